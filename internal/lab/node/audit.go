package node

import "github.com/kvcanary/kvcanary/internal/lab/handoff"

// audit finds pages that are in two tables. Those who share one are not served
// any more, also those whose turn is still to come: either may have written
// there.
func (d *decode) audit() {
	if !d.also.Any(OwnerAudit) {
		return
	}
	if d.owners == nil {
		d.owners = make([]handoff.Room, d.setup.Handoff.DecodePages)
	}
	clear(d.owners)
	for room := range d.asked {
		for _, page := range d.machine.Table(room) {
			if other := d.owners[page]; other != 0 {
				d.asked[room].shared = true
				if o := d.asked[other]; o != nil {
					o.shared = true
				}
			}
			d.owners[page] = room
		}
	}
}
