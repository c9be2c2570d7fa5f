package node

import (
	"github.com/zeebo/xxh3"

	"github.com/kvcanary/kvcanary/internal/lab/model"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

// reuse is the memory of the prefix cache beside its bookkeeping: both tiers are
// pages like those of a pool, never cleared.
type reuse struct {
	cache *prefix.Cache
	pages *model.Cache
	blobs *model.Cache // nil without a second tier
	size  int          // tokens a page
}

// newReuse returns nil where there is no prefix cache.
func newReuse(c prefix.Config) *reuse {
	if c.Pages == 0 {
		return nil
	}
	r := &reuse{cache: prefix.New(c), pages: model.NewCache(c.Pages, c.PageSize), size: c.PageSize}
	if c.Blobs > 0 {
		r.blobs = model.NewCache(c.Blobs, c.PageSize)
	}
	return r
}

// reused is what a prompt under way has to do with the prefix cache.
type reused struct {
	prompt prefix.Prompt
	loan   prefix.Loan
	loaded int // blocks of the loan that have been copied
	plan   *prefix.Plan
}

// loads is how many tokens are copied from the cache in one turn: about as long
// as it takes to compute a chunk.
const loads = 16 * chunk

// find begins to use what there is of a prompt.
func (r *reuse) find(p prefix.Prompt) *reused {
	return &reused{prompt: p, loan: r.cache.Find(&p)}
}

// load copies the next blocks of a loan into a prompt's own pages. It reports
// whether that was all.
func (r *reuse) load(u *reused, to *model.Cache, table model.Table) bool {
	for range max(1, loads/r.size) {
		if u.loaded == len(u.loan.Blocks) {
			return true
		}
		if !r.copy(to.Page(table[u.loaded]), u.loan.Blocks[u.loaded]) {
			r.cache.Give(u.loan)
			u.loan = prefix.Loan{}
			return true
		}
		u.loaded++
	}
	return false
}

// copy copies a block, if it still is what it was found as.
func (r *reuse) copy(to []byte, s prefix.Source) bool {
	from := r.pages
	if s.Blob {
		from = r.blobs
	}
	if !r.cache.Current(s) {
		return false
	}
	copy(to, from.Page(s.From))
	return r.cache.Current(s) && (!s.Summed || sumOf(to) == s.Sum)
}

func sumOf(page []byte) [16]byte { return xxh3.Hash128(page).Bytes() }

// plan gives the loan back and finds room for the blocks that are to be computed.
func (r *reuse) plan(u *reused) {
	r.cache.Give(u.loan)
	u.loan = prefix.Loan{}
	u.plan = r.cache.Plan(&u.prompt)
	r.clear(u.plan)
}

// clear makes the pages of a plan ready to be written to.
func (r *reuse) clear(plan *prefix.Plan) {
	for _, put := range plan.Puts {
		if put.Spill {
			copy(r.blobs.Page(put.Blob), r.pages.Page(put.Page))
			var sum [16]byte
			if r.cache.Summing() {
				sum = sumOf(r.blobs.Page(put.Blob))
			}
			r.cache.Spilled(put, sum)
		}
		if put.Clear {
			r.pages.Zero(put.Page)
		}
	}
}

// store copies the whole blocks among the first tokens of a prompt to the cache.
func (r *reuse) store(u *reused, from *model.Cache, table model.Table, tokens int) {
	for _, put := range u.plan.Puts {
		if (put.Block+1)*r.size <= tokens && r.cache.Writing(put) {
			copy(r.pages.Page(put.Page), from.Page(table[put.Block]))
		}
	}
}

// commit lets those blocks be found.
func (r *reuse) commit(u *reused, tokens int) { r.cache.Commit(u.plan, tokens/r.size) }

// last stores the block that ends with the first token of an answer, which has
// not been computed: with fault LastSlot.
func (r *reuse) last(u *reused, from *model.Cache, table model.Table, token byte) {
	if !r.cache.Early(prefix.LastSlot) || (len(u.prompt.Tokens)+1)%r.size != 0 {
		return
	}
	p := u.prompt
	p.Tokens = append(append(make([]byte, 0, len(p.Tokens)+1), p.Tokens...), token)
	v := &reused{prompt: p, plan: r.cache.Plan(&p)}
	r.clear(v.plan)
	r.store(v, from, table, len(p.Tokens))
	r.commit(v, len(p.Tokens))
}

// end lets go of all that a prompt holds here.
func (r *reuse) end(u *reused) {
	if u == nil {
		return
	}
	r.cache.Give(u.loan)
	if u.plan != nil {
		r.cache.Abandon(u.plan)
	}
}
