// Package watch reads an engine's answer on its way to the client, and lets
// through what may go on.
//
// A stream is cut into units: events, documents on lines of their own, comments.
// Every text of an event's JSON is joined, by the place where it stands, to the
// text of the events before it (content, reasoning, arguments of tools, log
// probabilities and their bytes, members that nobody has heard of), and each of
// these strands is scanned for canaries, as are the raw bytes of each unit. What
// is released is the bytes that came, in their order; nothing is written anew.
//
// # What is held
//
// A strict watch releases a unit when all its text is behind what may become
// part of a canary ([canary.Scanner.Pending]): a word that is under way and may
// become one of the list, and words of the list right before it, up to seven.
// So of a canary that is found, no letter has been let out.
//
// Text that may be canary and does not go on must not hold up an answer for
// ever: what a model thought may end in a word of the list and never come back
// to it; between an English word and the next may stand a page of Chinese. One
// word waits for 8 rounds without another letter of it, two words for 24, three
// for 64, four for 128, more for 256, where a round is an event of the strand
// that grows most; and for 2, 4, 8 ... pieces of its own strand that have no
// letter, as in a table of numbers or in Chinese. A canary whose words come
// further apart than that is found at its eighth word all the same, but some of
// its first are out by then.
//
// With an event a token, prose is released 0.4 events after it came on average,
// code 0.2, JSON 0.8, Chinese with English terms 0.9; 60 to 80 of a hundred
// events at once, none more than 7 events later (TestHoldBack measures it).
//
// What goes from one place of the JSON to another (four words in a model's
// thoughts, four in its answer) is not joined.
//
// Words by which a dialect names things (id, model, role, type, finish reasons)
// come whole: they are read, and not waited for. Comments overtake what is held.
package watch
