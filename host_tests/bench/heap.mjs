// Runs a MicroPython program on the WebAssembly port: node heap.mjs PORT PROGRAM FOLDER... (the path; a file
// in it is a ROMFS image, whose modules run from where they lie).
import fs from "fs";
import { pathToFileURL } from "url";

const [port, program, ...folders] = process.argv.slice(2);
const { loadMicroPython } = await import(pathToFileURL(port));
const mp = await loadMicroPython({
  heapsize: 8 * 1024 * 1024,
  stdout: (line) => console.log(line),
  linebuffer: true,
});

function copy(from, to) {
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    if (entry.isDirectory()) {
      if (entry.name !== "scenarios" && entry.name !== "__pycache__") {
        mp.FS.mkdir(`${to}/${entry.name}`);
        copy(`${from}/${entry.name}`, `${to}/${entry.name}`);
      }
    } else if (/\.m?py$/.test(entry.name)) {
      mp.FS.writeFile(`${to}/${entry.name}`, fs.readFileSync(`${from}/${entry.name}`));
    }
  }
}

mp.FS.mkdir("/work");
const path = [];
folders.forEach((folder, i) => {
  path.push(`/p${i}`);
  if (fs.statSync(folder).isFile()) {
    mp.FS.writeFile("/romfs.img", fs.readFileSync(folder));
    mp.runPython(`import vfs\nrom = open("/romfs.img", "rb").read()\nvfs.mount(vfs.VfsRom(rom), "/p${i}")`);
  } else {
    mp.FS.mkdir(`/p${i}`);
    copy(folder, `/p${i}`);
  }
});
mp.runPython(`import sys, os\nsys.path[:] = ${JSON.stringify([...path, ".frozen"])}\nos.chdir("/work")`);
mp.runPython(fs.readFileSync(program, "utf8"));
mp.runPython("count = len(STAGES)");
const stages = mp.globals.get("count");
for (let i = 0; i < stages; i++) {
  mp.runPython(`STAGES[${i}]()`);
  mp.runPython("gc.collect()");
  mp.runPython(`look(STAGES[${i}].__name__)`);
}
