"""What each fault means and the way out, in a technician's words: English, Portuguese, Chinese.

The one place for these sentences: the virtual table's page, `shakerctl` and the event catalogue show them.
Codes and their order are the firmware's (shaker.names.FAULTS); a test holds the two together.
"""

from __future__ import annotations

LANGUAGES = ("en", "pt", "zh")

# How any fault is cleared once its cause is gone.
CLEAR = {
    "en": "Turn the service key on and off.",
    "pt": "Rode a chave de serviço para ligado e de novo para desligado.",
    "zh": "把維修鎖匙開啟再關閉。",
}

# code: {language: (cause, remedy)}. The remedy says what comes before CLEAR.
FAULTS: dict[str, dict[str, tuple[str, str]]] = {
    "opened-in-shake": {
        "en": ("The cover or a latch opened while the dice were being shaken.", "Nothing to repair."),
        "pt": (
            "A cobertura ou um fecho abriu-se enquanto os dados eram agitados.",
            "Não há nada a reparar.",
        ),
        "zh": ("搖骰時蓋或扣鎖被打開。", "無需維修。"),
    },
    "opened-in-betting": {
        "en": (
            "The cover or a latch opened while bets were open, before the bell.",
            "Look whether the cover lock holds; the shake is repeated and bets stand.",
        ),
        "pt": (
            "A cobertura ou um fecho abriu-se com as apostas abertas, antes da campainha.",
            "Verifique se o trinco da cobertura segura; agita-se de novo e as apostas mantêm-se.",
        ),
        "zh": ("投注期間、響鐘之前，蓋或扣鎖被打開。", "檢查蓋鎖是否牢固；須重新搖骰，注碼保留。"),
    },
    "opened-while-off": {
        "en": (
            "The cover was opened while the power was off and bets were open.",
            "The shake is repeated and bets stand.",
        ),
        "pt": (
            "A cobertura foi aberta sem corrente, com as apostas abertas.",
            "Agita-se de novo e as apostas mantêm-se.",
        ),
        "zh": ("投注期間斷電時，蓋曾被打開。", "須重新搖骰，注碼保留。"),
    },
    "dome-opened": {
        "en": (
            "The glass dome left the base during a round.",
            "Seat the dome on the base; look at its lock and its contact.",
        ),
        "pt": (
            "A cúpula de vidro saiu da peanha durante uma ronda.",
            "Assente a cúpula na peanha; verifique o trinco e o contacto.",
        ),
        "zh": ("牌局進行中玻璃罩離開底座。", "把玻璃罩放回底座；檢查其鎖及觸點。"),
    },
    "shaken-late": {
        "en": (
            "The lever was pulled after betting had opened: unseen dice have moved.",
            "Nothing to repair.",
        ),
        "pt": (
            "A alavanca foi accionada depois de abertas as apostas: os dados moveram-se sem serem vistos.",
            "Não há nada a reparar.",
        ),
        "zh": ("開始投注後仍有人拉動搖桿，未見的骰子已移動。", "無需維修。"),
    },
    "latch-a-wiring": {
        "en": (
            "The two contacts of latch A contradict each other.",
            "Look for a cut wire, a loose plug or a welded contact at latch A.",
        ),
        "pt": (
            "Os dois contactos do fecho A contradizem-se.",
            "Procure um fio cortado, uma ficha solta ou um contacto soldado no fecho A.",
        ),
        "zh": ("扣鎖A的兩個觸點互相矛盾。", "檢查扣鎖A有否斷線、插頭鬆脫或觸點熔接。"),
    },
    "latch-b-wiring": {
        "en": (
            "The two contacts of latch B contradict each other.",
            "Look for a cut wire, a loose plug or a welded contact at latch B.",
        ),
        "pt": (
            "Os dois contactos do fecho B contradizem-se.",
            "Procure um fio cortado, uma ficha solta ou um contacto soldado no fecho B.",
        ),
        "zh": ("扣鎖B的兩個觸點互相矛盾。", "檢查扣鎖B有否斷線、插頭鬆脫或觸點熔接。"),
    },
    "agitator-stalled": {
        "en": (
            "A pulse was sent, but the base did not move.",
            "Look at the motor, its plug and fuse, the dice mechanism, and the motion sensor.",
        ),
        "pt": (
            "Foi dado um impulso, mas a base não se moveu.",
            "Verifique o motor, a ficha e o fusível, o mecanismo e o sensor de movimento.",
        ),
        "zh": ("已發出脈衝，但底座沒有移動。", "檢查馬達、插頭、保險絲、搖骰機構及移動感應器。"),
    },
    "agitator-runaway": {
        "en": (
            "The base moves though it should be still.",
            "Cut the motor's supply; replace the power stage, or look at the motion sensor.",
        ),
        "pt": (
            "A base move-se quando devia estar parada.",
            "Corte a alimentação do motor; substitua o andar de potência ou verifique o sensor de movimento.",
        ),
        "zh": ("底座應靜止卻在移動。", "切斷馬達電源；更換功率級，或檢查移動感應器。"),
    },
    "power-lost-in-shake": {
        "en": (
            "The power failed while the dice were being shaken.",
            "Look at the supply if it happens again.",
        ),
        "pt": (
            "A corrente faltou enquanto os dados eram agitados.",
            "Se se repetir, verifique a alimentação.",
        ),
        "zh": ("搖骰期間斷電。", "若再發生，檢查電源。"),
    },
    "restart-storm": {
        "en": (
            "Five starts in a row each lasted less than a minute.",
            "Look for a weak supply or a loose plug, then clear it; until then no actuator moves.",
        ),
        "pt": (
            "Cinco arranques seguidos duraram menos de um minuto cada.",
            "Procure uma alimentação fraca ou uma ficha solta e limpe a avaria; "
            "até lá nenhum actuador se move.",
        ),
        "zh": (
            "連續五次啟動均不足一分鐘。",
            "檢查電源不足或插頭鬆脫，再清除故障；在此之前所有機構停止動作。",
        ),
    },
    "clock-stalled": {
        "en": (
            "The controller's clock stood still.",
            "Restart; replace the controller if it happens again.",
        ),
        "pt": ("O relógio do controlador parou.", "Reinicie; se se repetir, substitua o controlador."),
        "zh": ("控制器時鐘停頓。", "重新啟動；若再發生，更換控制器。"),
    },
    "scan-overrun": {
        "en": (
            "A scan came more than a quarter of a second late during the shake.",
            "Clear it; send the journal to the maker if it happens again.",
        ),
        "pt": (
            "Durante a agitação, uma leitura atrasou-se mais de um quarto de segundo.",
            "Limpe a avaria; se se repetir, envie o registo ao fabricante.",
        ),
        "zh": ("搖骰時一次掃描遲了逾四分之一秒。", "清除故障；若再發生，把記錄交製造商。"),
    },
    "internal-error": {
        "en": (
            "The program met an error it did not expect; the event names its kind and place.",
            "Clear it; send the journal to the maker.",
        ),
        "pt": (
            "O programa encontrou um erro inesperado; o evento indica o tipo e o lugar.",
            "Limpe a avaria; envie o registo ao fabricante.",
        ),
        "zh": ("程式出現意外錯誤；事件記錄了種類及位置。", "清除故障；把記錄交製造商。"),
    },
    "settings-invalid": {
        "en": (
            "The settings file is damaged, or was changed without authorisation; the defaults are in force.",
            "Provision the settings again and restart.",
        ),
        "pt": (
            "O ficheiro de definições está danificado ou foi alterado sem autorização; vigoram as de origem.",
            "Instale de novo as definições e reinicie.",
        ),
        "zh": ("設定檔損壞或未經批准被更改；現用預設值。", "重新載入設定並重新啟動。"),
    },
    "program-altered": {
        "en": (
            "A program file differs from the released one; nothing runs.",
            "Deploy the released firmware again.",
        ),
        "pt": (
            "Um ficheiro do programa difere do publicado; nada funciona.",
            "Instale de novo o programa publicado.",
        ),
        "zh": ("程式檔案與發行版本不符；停止運作。", "重新安裝發行版本。"),
    },
    "journal-failed": {
        "en": (
            "The journal in flash cannot be written or read.",
            "Restart; replace the controller if it stays, after reading the journal out.",
        ),
        "pt": (
            "Não é possível escrever ou ler o registo na memória flash.",
            "Reinicie; se persistir, leia o registo e substitua o controlador.",
        ),
        "zh": ("快閃記憶體中的記錄無法讀寫。", "重新啟動；若仍出現，先讀出記錄再更換控制器。"),
    },
}


def cause(code: str, language: str = "en") -> str:
    """Return the one sentence that says what fault `code` means. Raises KeyError for no fault."""
    return FAULTS[code][language][0]


def remedy(code: str, language: str = "en") -> str:
    """Return the way out of fault `code`, clearing included. Raises KeyError for no fault."""
    text = FAULTS[code][language][1]
    if code == "program-altered":  # nothing runs that could be cleared
        return text
    return text + ("" if language == "zh" else " ") + CLEAR[language]
