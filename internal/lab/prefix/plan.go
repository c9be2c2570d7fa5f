package prefix

// Put is a page that a block of a prompt shall be written to. Clear and Spill are
// to be done at once, in the order of the puts, before anything is written.
type Put struct {
	Block int // which of the prompt
	Page  int32
	Clear bool  // clear the page
	Spill bool  // first copy the page to the second tier
	Blob  int32 // there

	gen   uint64
	spill key // of the handle that the blob has
	done  bool
}

// Plan is where the blocks of a prompt go that are not in the first tier.
type Plan struct{ Puts []Put }

// Plan gives out pages for the blocks of a prompt that cannot be found in the
// first tier, as far as there are pages that nobody uses. Those that can be found
// count as used, the first of them last.
func (c *Cache) Plan(p *Prompt) *Plan {
	plan := &Plan{}
	names := c.names(p, len(c.pages))
	for i := len(names) - 1; i >= 0; i-- {
		if at, ok := c.index[names[i].key]; ok && c.good(at, &names[i]) {
			c.settle(at)
		}
	}
	for i := range names {
		if at, ok := c.index[names[i].key]; ok && c.good(at, &names[i]) {
			continue
		}
		put, ok := c.take(&names[i])
		if !ok {
			break
		}
		put.Block = i
		plan.Puts = append(plan.Puts, put)
	}
	return plan
}

// take gives out a page: a free one, or the one that was used longest ago.
func (c *Cache) take(n *name) (put Put, ok bool) {
	if last := len(c.free) - 1; last >= 0 {
		put.Page, c.free = c.free[last], c.free[:last]
	} else {
		oldest := c.idle.Front()
		if oldest == nil {
			return Put{}, false
		}
		put.Page = oldest.Value.(int32)
		put.spill = c.pages[put.Page].blob
		put.Blob, put.Spill = c.tier.put(c, &c.pages[put.Page])
		c.forget(put.Page)
	}
	pg := &c.pages[put.Page]
	pg.gen++
	pg.name, pg.state, put.gen = *n, pending, pg.gen
	if c.on.Any(TagsAtReserve) {
		pg.mark, pg.marked = n.tag, pg.gen
	}
	if !c.on.Any(AfterCommit) && c.cfg.Switches.Has(NeverWritten) {
		pg.state = whole
		c.publish(put.Page)
	}
	put.Clear = c.on.Any(ZeroOnAlloc)
	return put, true
}

// Commit says that the blocks of a plan below block n have been written whole.
func (c *Cache) Commit(plan *Plan, n int) {
	for i := range plan.Puts {
		put := &plan.Puts[i]
		if put.Block >= n || put.done {
			continue
		}
		put.done = true
		pg := &c.pages[put.Page]
		if pg.gen != put.gen || pg.state == blank {
			continue // published early, and gone again
		}
		if c.on.Any(TagsByWriter) {
			pg.mark, pg.marked = pg.name.tag, pg.gen
		}
		pg.state = whole
		c.publish(put.Page)
	}
}

// publish lets a page be found, in place of what had its key.
func (c *Cache) publish(i int32) {
	pg := &c.pages[i]
	if old, ok := c.index[pg.key]; ok && old != i {
		if c.pages[old].lent > 0 || c.pages[old].state == pending {
			c.drop(i) // somebody reads what is there: this one is not needed
			return
		}
		c.drop(old)
	}
	c.index[pg.key], pg.indexed = i, true
	c.settle(i)
}

// Abandon says that nothing more of a plan will be written.
func (c *Cache) Abandon(plan *Plan) {
	for _, put := range plan.Puts {
		if pg := &c.pages[put.Page]; !put.done && pg.gen == put.gen && pg.state == pending {
			c.drop(put.Page)
		}
	}
	plan.Puts = nil
}

// forget has a page be found no more.
func (c *Cache) forget(i int32) {
	pg := &c.pages[i]
	if pg.place != nil {
		c.idle.Remove(pg.place)
		pg.place = nil
	}
	if pg.indexed && c.index[pg.key] == i {
		delete(c.index, pg.key)
	}
	pg.indexed, pg.state = false, blank
}

// drop makes a page free. What is in it stays there.
func (c *Cache) drop(i int32) {
	c.forget(i)
	c.free = append(c.free, i)
}

// Writing reports whether a put still wants its block.
func (c *Cache) Writing(put Put) bool {
	pg := &c.pages[put.Page]
	return !put.done && pg.gen == put.gen && pg.state != blank
}
