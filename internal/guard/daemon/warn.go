package daemon

import (
	"net"
)

// Warnings are what a good file leaves open, for people: each is a way for a
// leak to come about, or to go unseen.
func (s *Setup) Warnings() (out []string) {
	c := s.Config
	if p := c.Admission.Policy; p != "closed" {
		out = append(out, "admission is "+p+": prompts that are not known to fit reach the engine")
	}
	switch {
	case c.Watch.Mode != "strict":
		out = append(out, "the watch is "+c.Watch.Mode+": leaked words reach the client")
	case len(c.Watch.KeyFiles) == 0 && c.Synthetic.KeyFile == "":
		out = append(out, "the watch has no key of canaries: it sees answers that do not hold together, and no leaked words; name one under watch or synthetic")
	}
	switch open := c.Listen.Socket == "" && c.Listen.ClientCA == "" && !loopback(c.Listen.Address); {
	case open && c.Tenancy.Header != "":
		out = append(out, "whoever reaches "+c.Listen.Address+" says in "+c.Tenancy.Header+" whose request it is: let none but the gateway reach it")
	case open && len(c.Tenancy.Tenants) == 0:
		out = append(out, "everybody who reaches "+c.Listen.Address+" is let in: name tenants")
	}
	return out
}

// loopback reports whether an address can be reached from this machine only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
