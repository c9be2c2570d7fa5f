package handoff

// travels says which kinds may come over the link between two roles.
var travels = map[[2]Role][]Kind{
	{ToRouter, ToPrefill}: {Submit, Abort},
	{ToRouter, ToDecode}:  {Submit, Abort},
	{ToPrefill, ToRouter}: {Refused},
	{ToDecode, ToRouter}:  {Token, Done, Refused},
	{ToPrefill, ToDecode}: {Hello, Page, Meta, Gone},
	{ToDecode, ToPrefill}: {Reserved, Ack, Quiesce},
}

// Travels reports whether an event of kind k may come from one role to another:
// what a machine hears of its own work, and of the ends of its links, it must
// not believe a peer.
func (k Kind) Travels(from, to Role) bool {
	for _, may := range travels[[2]Role{from, to}] {
		if k == may {
			return true
		}
	}
	return false
}
