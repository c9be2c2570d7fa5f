package handoff

// Held is how many requests the machine has not let go of, to look at.
func (p *Prefill) Held() int { return len(p.rooms) + len(p.stopping) }

// Held is how many requests the machine has not let go of, to look at.
func (d *Decode) Held() int { return len(d.rooms) }
