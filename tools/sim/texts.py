"""Every word on the page, in English, Portuguese and Chinese as written in Macau.

Names are the firmware's (shaker.names); what a fault means is in shakerctl/faults.py. A hint says what people
do in a phase and which things it is about: it teaches, nothing follows from it.
"""

from __future__ import annotations

LANGUAGES = {"en": "English", "pt": "Português", "zh": "中文"}
HTML_LANGUAGE = {"en": "en", "pt": "pt-PT", "zh": "zh-Hant-MO"}

_Three = tuple[str, str, str]

_COLOURS: dict[str, _Three] = {
    "red": ("red", "vermelho", "紅"),
    "green": ("green", "verde", "綠"),
    "blue": ("blue", "azul", "藍"),
}
_FIGURES: dict[str, _Three] = {
    "fish": ("Fish", "Peixe", "魚"),
    "prawn": ("Prawn", "Camarão", "蝦"),
    "gourd": ("Gourd", "Cabaço", "葫蘆"),
    "coin": ("Coin", "Moeda", "金錢"),
    "crab": ("Crab", "Caranguejo", "蟹"),
    "rooster": ("Rooster", "Galo", "雞"),
}
_COUNTS: tuple[_Three, ...] = (("One", "Um", "一"), ("Two", "Dois", "兩"), ("Three", "Três", "三"))
_PLURALS = {  # English, Portuguese
    "fish": ("fish", "peixes"),
    "prawn": ("prawns", "camarões"),
    "gourd": ("gourds", "cabaços"),
    "coin": ("coins", "moedas"),
    "crab": ("crabs", "caranguejos"),
    "rooster": ("roosters", "galos"),
    "red": ("red", "vermelhos"),
    "green": ("green", "verdes"),
    "blue": ("blue", "azuis"),
}


def _bets() -> dict[str, _Three]:
    bets: dict[str, _Three] = {
        "small": ("Small", "Pequeno", "小"),
        "big": ("Big", "Grande", "大"),
        "colour3": ("Any one colour", "Três da mesma cor", "任何全色"),
        "triple": ("Any triple", "Três figuras iguais", "任何三同"),
    }
    for name, (_, _, zh) in _FIGURES.items():
        en, pt = _PLURALS[name]
        bets[name] = _FIGURES[name]
        bets[name + "3"] = ("Three " + en, "Três " + pt, "三" + zh)
    for name, (_, one, zh) in _COLOURS.items():
        en, pt = _PLURALS[name]
        for i, count in enumerate(_COUNTS):
            bets[f"{name}{i + 1}"] = (f"{count[0]} {en}", f"{count[1]} {pt if i else one}", count[2] + zh)
    for n in range(4, 18):
        bets[f"n{n}"] = (f"Sum {n}", f"Soma {n}", f"{n}點")
    return bets


BETS = _bets()

PHASES: dict[str, _Three] = {
    "IDLE": ("At rest", "Em repouso", "待機"),
    "COVERED": ("Covered", "Coberto", "已蓋"),
    "SHAKING": ("Shaking", "A agitar", "搖骰"),
    "BETTING": ("Bets open", "Apostas abertas", "投注"),
    "CLOSED": ("Bets closed", "Apostas fechadas", "停止投注"),
    "PAYOUT": ("Payout", "Pagamento", "派彩"),
    "VOID": ("Void", "Nula", "作廢"),
    "FAULT": ("Fault", "Avaria", "故障"),
}

# phase: (what to do, and what it is about: thing or thing=where it ends up)
HINTS: dict[str, tuple[_Three, tuple[str, ...]]] = {
    "IDLE": (
        (
            "Put the cover over the dome and close both latches.",
            "Ponha a cobertura sobre a cúpula e feche os dois fechos.",
            "把蓋罩在玻璃罩上，扣好兩個扣鎖。",
        ),
        ("cover=on", "latch_a=closed", "latch_b=closed"),
    ),
    "COVERED": (
        (
            "Press start: the dice are shaken three times.",
            "Prima iniciar: os dados são agitados três vezes.",
            "按「開始」：骰子搖三次。",
        ),
        ("start",),
    ),
    "SHAKING": (
        (
            "Three knocks. The cover is locked.",
            "Três pancadas. A cobertura está trancada.",
            "搖三下。蓋已鎖上。",
        ),
        (),
    ),
    "BETTING": (
        (
            "Players bet. Ring the bell to close the bets.",
            "Os jogadores apostam. Toque a campainha para fechar.",
            "閒家投注。響鐘停止投注。",
        ),
        ("bell",),
    ),
    "CLOSED": (
        (
            "Open both latches and lift the cover.",
            "Abra os dois fechos e levante a cobertura.",
            "打開兩個扣鎖，揭蓋。",
        ),
        ("latch_a=open", "latch_b=open", "cover=off"),
    ),
    "PAYOUT": (
        (
            "Enter the dice, pay every prize, then hold paid. Dice stacked or tilted: press void.",
            "Introduza os dados, pague todos os prémios e mantenha premido pago. "
            "Dados sobrepostos ou inclinados: prima nula.",
            "輸入骰子，派發所有彩金，然後按住「已派彩」。骰子疊起或傾斜：按「作廢」。",
        ),
        ("result", "paid"),
    ),
    "VOID": (
        (
            "Bets stand and may be added to. Cover, latch and shake again.",
            "As apostas mantêm-se e podem ser aumentadas. Cubra, feche e agite de novo.",
            "注碼保留，可加注。蓋好、扣鎖、重新搖骰。",
        ),
        ("cover=on", "latch_a=closed", "latch_b=closed"),
    ),
    "FAULT": (
        ("Call the supervisor.", "Chame o supervisor.", "請通知主管。"),
        (),
    ),
}

THINGS: dict[str, _Three] = {
    "cover": ("Cover", "Cobertura", "蓋"),
    "latch_a": ("Latch A", "Fecho A", "扣鎖A"),
    "latch_b": ("Latch B", "Fecho B", "扣鎖B"),
    "dome": ("Glass dome", "Cúpula", "玻璃罩"),
    "start": ("Start", "Iniciar", "開始"),
    "lever": ("Lever", "Alavanca", "搖桿"),
    "bell": ("Bell", "Campainha", "鐘"),
    "void": ("Void", "Nula", "作廢"),
    "paid": ("Paid", "Pago", "已派彩"),
    "service": ("Service key", "Chave de serviço", "維修鎖匙"),
    "motion": ("Motion sensor", "Sensor de movimento", "移動感應器"),
    "agitator": ("Agitator", "Agitador", "搖骰器"),
    "agitator_enable": ("Agitator enable", "Habilitação do agitador", "搖骰器使能"),
    "cover_lock": ("Cover lock", "Trinco da cobertura", "蓋鎖"),
    "cover_bar": ("Cover bar", "Bloqueio do fecho", "擋栓"),
    "dome_lock": ("Dome lock", "Trinco da cúpula", "罩鎖"),
    "front_board": ("Front board", "Quadro frontal", "前方燈牌"),
    "alarm": ("Alarm", "Alarme", "警報"),
    "base_moving": ("Base moves", "Base move-se", "底座移動"),
    "power": ("Power", "Corrente", "電源"),
    "clear": ("Clear", "Limpar avaria", "清除故障"),
    "abandon": ("Abandon", "Abandonar", "放棄"),
    "result": ("Dice result", "Resultado", "開骰結果"),
}

VALUES: dict[str, _Three] = {
    "open": ("open", "aberto", "開"),
    "closed": ("closed", "fechado", "關"),
    "invalid": ("contradictory", "contraditório", "矛盾"),
    "on": ("on", "ligado", "開"),
    "off": ("off", "desligado", "關"),
    "pressed": ("pressed", "premido", "按下"),
    "released": ("released", "solto", "放開"),
    "cover_on": ("on", "posta", "已蓋"),
    "cover_off": ("off", "tirada", "已揭"),
    "dome_open": ("off", "retirada", "已取下"),
    "dome_closed": ("seated", "assente", "已放好"),
    "service_on": ("on", "ligada", "開"),
    "service_off": ("off", "desligada", "關"),
    "still": ("still", "parado", "靜止"),
    "moving": ("moving", "em movimento", "移動中"),
}

EVENTS: dict[str, _Three] = {
    "boot": ("Started", "Arranque", "啟動"),
    "covered": ("Covered", "Coberto", "已蓋好"),
    "uncovered": ("Uncovered", "Descoberto", "已開蓋"),
    "shake-start": ("Shake begins", "Começa a agitação", "開始搖骰"),
    "shake-done": ("Shake done", "Agitação concluída", "搖骰完成"),
    "bets-open": ("Bets open", "Apostas abertas", "開始投注"),
    "bets-closed": ("Bets closed", "Apostas fechadas", "停止投注"),
    "lifted": ("Cover lifted", "Cobertura levantada", "已揭蓋"),
    "result": ("Result", "Resultado", "結果"),
    "void": ("Round void", "Ronda nula", "此局作廢"),
    "paid": ("Paid", "Pago", "已派彩"),
    "covered-unpaid": ("Covered before payout", "Coberto antes do pagamento", "未派彩已蓋"),
    "uncovered-unpaid": ("Uncovered again", "Descoberto de novo", "再次揭開"),
    "abandoned": ("Round abandoned", "Ronda abandonada", "放棄此局"),
    "refused": ("Refused", "Recusado", "拒絕"),
    "key-stuck": ("Key stuck", "Tecla presa", "按鍵卡住"),
    "fault": ("Fault", "Avaria", "故障"),
    "clear": ("Fault cleared", "Avaria limpa", "故障已清除"),
    "recovered": ("Restored after restart", "Reposto após reinício", "重啟後恢復"),
    "service": ("Service mode", "Modo de serviço", "維修模式"),
    "settings": ("Settings", "Definições", "設定"),
    "time": ("Time set", "Hora acertada", "已校時"),
    "link": ("Host link", "Ligação ao anfitrião", "主機連線"),
    "lost": ("Events lost", "Eventos perdidos", "事件遺失"),
}

# Reasons of `refused`, and error codes of replies.
REASONS: dict[str, _Three] = {
    "wrong-phase": ("not now", "não agora", "現在不可"),
    "cover-on": ("the cover is on", "a cobertura está posta", "蓋未揭開"),
    "cause-present": ("the cause is still there", "a causa persiste", "成因仍在"),
    "latch-not-seen-open": (
        "each latch must be opened once first",
        "cada fecho tem de ser aberto uma vez",
        "須先打開每個扣鎖一次",
    ),
    "service": ("service key or service mode", "chave ou modo de serviço", "維修鎖匙或維修模式"),
    "dome-open": ("the dome is open", "a cúpula está aberta", "玻璃罩未關"),
    "not-covered": ("not covered and latched", "não está coberto e fechado", "未蓋好及扣鎖"),
    "too-few": ("too few strokes", "poucas accionadas", "次數不足"),
    "journal-full": ("the journal is full", "o registo está cheio", "記錄已滿"),
    "fault": ("there is a fault", "há uma avaria", "有故障"),
    "busy": ("the device is busy", "o dispositivo está ocupado", "裝置忙碌"),
    "no-key": ("no key is provisioned", "sem chave instalada", "未有密鑰"),
    "no-answer": ("no answer from the device", "o dispositivo não responde", "裝置沒有回應"),
}

BLOCKED: dict[str, _Three] = {
    "cover_lock": (
        "The cover lock holds the latch closed.",
        "O trinco mantém o fecho fechado.",
        "蓋鎖鎖住扣鎖，不能打開。",
    ),
    "cover_bar": (
        "The bar keeps the latch from closing until payout is confirmed.",
        "O bloqueio impede o fecho até se confirmar o pagamento.",
        "確認派彩前，擋栓阻止扣鎖關閉。",
    ),
    "dome_lock": ("The dome lock holds the glass dome.", "O trinco segura a cúpula.", "罩鎖鎖住玻璃罩。"),
    "latch_a": ("Latch A holds the cover.", "O fecho A segura a cobertura.", "扣鎖A扣住蓋。"),
    "latch_b": ("Latch B holds the cover.", "O fecho B segura a cobertura.", "扣鎖B扣住蓋。"),
    "no_cover": ("There is no cover to latch.", "Não há cobertura para fechar.", "未有蓋可扣。"),
    "cover": ("The cover is over the dome.", "A cobertura está sobre a cúpula.", "蓋罩住玻璃罩。"),
}

UI: dict[str, _Three] = {
    "title": ("Fish-Prawn-Crab", "Peixe-camarão-caranguejo", "魚蝦蟹"),
    "subtitle": ("virtual table", "mesa virtual", "虛擬賭枱"),
    "language": ("Language", "Idioma", "語言"),
    "theme": ("Light or dark", "Claro ou escuro", "淺色或深色"),
    "skip": ("Skip to the keys", "Saltar para as teclas", "跳至按鍵"),
    "round": ("Round", "Ronda", "局"),
    "repeat": ("Repeat", "Repetição", "重搖"),
    "phase": ("Phase", "Fase", "階段"),
    "cup": ("The cup, from the side", "O copo, de lado", "骰盅（側面）"),
    "above": ("from above", "de cima", "俯視"),
    "layout": ("The layout, from above", "O pano, de cima", "賭枱（俯視）"),
    "keys": ("Croupier's keys", "Teclas do croupier", "莊荷按鍵"),
    "supervisor": ("Supervisor", "Supervisor", "主管"),
    "hold": ("hold", "manter", "按住"),
    "pull3": ("three strokes", "três vezes", "拉三下"),
    "next": ("What now", "E agora", "下一步"),
    "result": ("Dice result", "Resultado dos dados", "開骰結果"),
    "send_seen": ("Announce what lies there", "Anunciar o que se vê", "公佈所見結果"),
    "send": ("Send", "Enviar", "送出"),
    "die": ("Die", "Dado", "骰"),
    "seen_covered": (
        "The cover is on: nobody can see the dice.",
        "A cobertura está posta: ninguém vê os dados.",
        "已蓋：無人看見骰子。",
    ),
    "seen_stacked": (
        "A die lies on another: stacked.",
        "Um dado está sobre outro: sobrepostos.",
        "一顆骰疊在另一顆上：疊骰。",
    ),
    "seen_tilted": (
        "A die leans on another: tilted.",
        "Um dado está encostado a outro: inclinado.",
        "一顆骰倚着另一顆：斜骰。",
    ),
    "seen_tumbling": ("The dice are moving.", "Os dados movem-se.", "骰子滾動中。"),
    "program_is_host": (
        "A program on the UART is the host. Sending from here opens a session beside its own.",
        "Um programa na UART é o anfitrião. Enviar daqui abre outra sessão ao lado da dele.",
        "UART上的程式為主機。由此送出會另開工作階段。",
    ),
    "host": ("Host", "Anfitrião", "主機"),
    "host_builtin": ("built in", "interno", "內置"),
    "host_program": ("program on the UART", "programa na UART", "UART程式"),
    "host_lost": ("unplugged", "desligado", "已拔線"),
    "host_nokey": ("built in, listens only: no key", "interno, só escuta: sem chave", "內置，只接收：無密鑰"),
    "win": ("Winning bets", "Apostas vencedoras", "中彩"),
    "none": ("none", "nenhuma", "無"),
    "events": ("Events on the UART", "Eventos na UART", "UART事件"),
    "timeline": ("The last 30 seconds", "Os últimos 30 segundos", "最近30秒"),
    "freeze": ("Freeze", "Congelar", "凍結"),
    "save_vcd": ("Save as VCD", "Guardar VCD", "存為VCD"),
    "inputs": ("Inputs", "Entradas", "輸入"),
    "outputs": ("Outputs", "Saídas", "輸出"),
    "xray": ("See through the cover", "Ver através da cobertura", "透視"),
    "status_led": ("Status LED", "LED de estado", "狀態燈"),
    "board_text": ("BETS OPEN", "APOSTAS", "投注"),
    "break": ("Break something", "Avariar algo", "製造故障"),
    "close": ("Close", "Fechar", "關閉"),
    "hands": ("By force", "À força", "強行"),
    "pry": ("Pry open", "Forçar", "撬開"),
    "wires": ("Cut a wire", "Cortar um fio", "剪線"),
    "welded_keys": ("Stuck key", "Tecla presa", "按鍵卡住"),
    "motor": ("Motor", "Motor", "馬達"),
    "motor_ok": ("works", "funciona", "正常"),
    "motor_dead": ("dead", "morto", "失效"),
    "motor_runaway": ("runs away", "descontrolado", "失控"),
    "motor_welded": ("power stage welded", "andar de potência soldado", "功率級熔接"),
    "electric": ("Power", "Corrente", "電源"),
    "power_off": ("Cut the power", "Cortar a corrente", "斷電"),
    "power_on": ("Power on", "Ligar a corrente", "通電"),
    "restart": ("Restart", "Reiniciar", "重新啟動"),
    "line": ("Line to the host", "Linha do anfitrião", "主機線路"),
    "line_lost": ("Unplugged", "Desligada", "拔線"),
    "line_noisy": ("Noisy: 1 byte in 100", "Ruidosa: 1 byte em 100", "雜訊：百分之一位元組"),
    "contacts": ("Contacts bounce", "Contactos ressaltam", "觸點彈跳"),
    "dice_fall": ("The next dice fall", "Os próximos dados caem", "下次骰子"),
    "dice_chance": ("by chance", "ao acaso", "隨機"),
    "dice_flat": ("flat", "direitos", "平放"),
    "dice_stacked": ("stacked", "sobrepostos", "疊起"),
    "dice_tilted": ("tilted", "inclinados", "傾斜"),
    "mend": ("Mend everything", "Reparar tudo", "全部修復"),
    "renew": ("New, empty table", "Mesa nova e vazia", "全新空枱"),
    "rules": ("Rules and prizes", "Regras e prémios", "規則與賠率"),
    "rules_from": (
        "Despacho 59/2004, from the firmware's own table",
        "Despacho 59/2004, da tabela do firmware",
        "第59/2004號批示，取自韌體",
    ),
    "bet": ("Bet", "Aposta", "注項"),
    "pays": ("Pays", "Paga", "賠率"),
    "chance": ("Wins in 216", "Ganha em 216", "216次中"),
    "faces": ("Faces of each die", "Faces de cada dado", "骰面"),
    "remedy": ("Way out", "Solução", "解決"),
    "offline": (
        "The table has gone: is `make sim` still running?",
        "A mesa desapareceu: `make sim` está a correr?",
        "賭枱已離線：make sim 是否仍在運行？",
    ),
    "unpowered": ("The device has no power.", "O dispositivo está sem corrente.", "裝置沒有電源。"),
    "alarm_unpaid": (
        "The dome may not be covered before every prize is paid: take the cover off.",
        "A cúpula não pode ser coberta antes de pagos todos os prémios: tire a cobertura.",
        "派彩完畢前不得蓋上玻璃罩：請揭蓋。",
    ),
    "silent": ("No word from the device.", "O dispositivo não diz nada.", "裝置沒有訊息。"),
    "ended": (
        "The firmware's process has ended: start a new table.",
        "O processo do firmware terminou: comece uma mesa nova.",
        "韌體程序已結束：請開新枱。",
    ),
    "service_tip": (
        "Turn on and off to clear a fault.",
        "Ligue e desligue para limpar uma avaria.",
        "開啟再關閉以清除故障。",
    ),
    "shortcuts": ("Keyboard", "Teclado", "鍵盤"),
    "engaged": ("engaged", "engatado", "已鎖"),
    "withdrawn": ("withdrawn", "recolhido", "收回"),
    "lit": ("lit", "aceso", "亮"),
    "dark": ("dark", "apagado", "熄"),
    "turn_die": ("Turn this die", "Virar este dado", "轉動此骰"),
    "saved": ("Saved", "Guardado", "已儲存"),
}

COLOUR_NAMES: dict[str, _Three] = {
    "off": ("off", "apagado", "熄"),
    "white": ("white", "branco", "白"),
    "blue": ("blue", "azul", "藍"),
    "amber": ("amber", "âmbar", "琥珀"),
    "green": ("green", "verde", "綠"),
    "yellow": ("yellow", "amarelo", "黃"),
    "cyan": ("cyan", "ciano", "青"),
    "magenta": ("magenta", "magenta", "洋紅"),
    "red": ("red", "vermelho", "紅"),
}

FIGURES = _FIGURES
COLOURS = _COLOURS
