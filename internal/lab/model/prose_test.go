package model

import (
	"math/rand/v2"
	"strings"
)

var words = strings.Fields(`
	able about above actor again agree ahead alarm album alert alike alive allow alone along angle ankle apple april apron
	armor arrow aside asset atlas audio avoid award bacon badge baker basic basin beach beast begin being below bench birth
	blade blank blend block bloom board boost brain brave bread break brick bridge brief bright bring broad brother brown
	brush build bundle cabin cable camera canal candle canyon carbon carpet carry castle cattle center chain chair chalk
	change charge chart cheese cherry choice circle civil claim class clean clear climb clock cloud coach coast coffee color
	column comet common copper corner cotton county course cover craft cream create cross crowd crystal curve custom cycle
	daily dance danger dealer decade defend degree delta depth desert design detail dinner doctor dragon drama dream dress
	drive early earth easily editor effort eight either elbow empire energy engine enough entire equal escape event every
	exact example extra fabric factor family famous farmer father field fight filter final finger finish flame fleet floor
	flower forest formal fossil frame fresh friend front fruit future galaxy garage garden gentle ghost giant glass globe
	golden grain grand grape green ground group guard guide guitar hammer handle harbor health heart heavy height hidden
	honest honey horse hotel house human humble hungry image impact inside island jacket jungle junior kernel kitchen ladder
	large laser later laugh layer leader legal lemon letter level light limit liquid little local logic lucky lunch machine
	magnet maple marble margin market master matter meadow medal memory metal middle minor mirror model modern money month
	moral mother motion motor mountain mouse music narrow nation nature nearly needle nephew never night noble noise north
	novel number object ocean office often onion open orange orbit order other outer owner oxygen packet paint palace panel
	paper parent party patch pause peace pencil pepper phone photo piano picture pilot pioneer planet plant plate player
	pocket poem point polar pond power prefer press pretty price print prison profit proud public pupil purple quick quiet
	rabbit radio rapid ready recipe record region repair report rescue result ribbon right river road robot rocket round
	royal rural sable saddle salad salmon sample scale scene school science season second secret seed select senior session
	shadow shape sharp shelf shell ship shore short sight signal silent silver simple singer sister sleep slice small smart
	smile smoke smooth snow soccer social solar solid sound source south space speak speed spice spirit sport spring square
	stable stage stand start state steam steel stone store storm story street strong studio sugar summer sunny sunset supply
	surface sweet symbol table talent target teach temple tennis thank theory thing ticket tiger timber title today token
	tomato tower track trade train travel tree trial tribe truck trust turtle twelve twenty under union unique until upper
	urban useful valley value velvet video violin visit vital voice volume wagon water weather wheel white whole window
	winter wisdom wonder world worth write yellow young zebra`)

// prose is random words, one space between two, n bytes in all.
func prose(rng *rand.Rand, n int) []byte {
	var text []byte
	for len(text) < n {
		text = append(text, words[rng.IntN(len(words))]...)
		text = append(text, ' ')
	}
	return text[:n]
}
