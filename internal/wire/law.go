package wire

import "math"

// observation is a prompt of so many bytes of text, in so many messages, of
// which a target counted so many tokens.
type observation struct {
	bytes    int64
	messages int
	tokens   int
}

// law says how many tokens a prompt has: constant + perByte*bytes +
// perMessage*messages, fitted to observations by least squares. Text whose
// words cost a varying number of tokens has an error that grows with the
// square root of its length, so observations are weighted by one over their
// bytes, and a weak prior keeps the fit sane until there are several. The zero
// value is the prior alone.
type law struct {
	// hidden allows for a prompt of the target's own, hundreds of tokens long,
	// in front of every other: with few observations that is more than can be
	// learned besides the rest.
	hidden  bool
	n       int
	sums    [3][3]float64 // of the normal equations
	right   [3]float64
	biggest int64   // bytes of the longest prompt taken
	noise   float64 // sum of squared surprises, each over its scatter
	noisy   float64 // how many of them there are
}

// What is assumed of the three numbers before anything was seen, give or take
// the spreads. English text in the tokenizers of 2026 has 4 to 5 bytes a token;
// chat templates cost 3 to 10 tokens a turn. None is ever taken to be outside
// its bounds.
var (
	priorMean   = [3]float64{0, 0.25, 6}
	priorSpread = [3]float64{16, 0.1, 10}
	least       = [3]float64{math.Inf(-1), leastPerByte, 0} // a target may leave its template out
	most        = [3]float64{math.Inf(1), mostPerByte, math.Inf(1)}
)

// No tokenizer makes more than one and a quarter tokens a byte, or has more
// than 16 bytes a token, and no target counts each twice and still means tokens.
const (
	leastPerByte = 1.0 / 16
	mostPerByte  = 2.5
)

// hiddenSpread is how many tokens a hidden prompt may have, give or take.
const hiddenSpread = 1000

const (
	// byteVariance is the variance of a text's tokens for every byte of it, as
	// assumed before anything was seen; words of canary in a vocabulary of
	// learned pieces have 0.02 to 0.1.
	byteVariance = 0.05
	// byteVarianceWeight is how many observations that assumption stands for.
	byteVarianceWeight = 4
	// settled is how many observations make a law that others can be held to.
	settled = 6
)

func (o observation) row() [3]float64 {
	return [3]float64{1, float64(o.bytes), float64(o.messages)}
}

// add takes an observation in.
func (l *law) add(o observation) {
	x, size := o.row(), math.Max(float64(o.bytes), 1)
	if l.n >= settled {
		// How far off the law was before it knew says how steady the text is.
		off := float64(o.tokens) - l.expect(o.bytes, o.messages)
		l.noise += off * off / l.scatter(o)
		l.noisy++
	}
	w := 1 / (byteVariance * size)
	for i := range x {
		for j := range x {
			l.sums[i][j] += w * x[i] * x[j]
		}
		l.right[i] += w * x[i] * float64(o.tokens)
	}
	l.n++
	l.biggest = max(l.biggest, o.bytes)
}

// expect is how many tokens a prompt will have.
func (l *law) expect(bytes int64, messages int) float64 {
	p, sum := l.fit(), 0.0
	for i, x := range (observation{bytes: bytes, messages: messages}).row() {
		sum += p[i] * x
	}
	return math.Max(0, sum)
}

// spread is the standard deviation of what a prompt has beside what is
// expected, tokens.
func (l *law) spread(o observation) float64 {
	v := (l.noise + byteVarianceWeight*byteVariance) / (l.noisy + byteVarianceWeight)
	return math.Sqrt(v * l.scatter(o))
}

// scatter is the variance of that for every unit that the variance of a byte
// has: the prompt's own words vary, and so do those that the law was learned
// from, the more the further the prompt is from them.
func (l *law) scatter(o observation) float64 {
	x := o.row()
	z := l.solve(x, [3]bool{}, [3]float64{})
	return math.Max(x[1], 1) + (x[0]*z[0]+x[1]*z[1]+x[2]*z[2])/byteVariance
}

// shortBy is how many tokens an observation lacks that a prompt of its bytes
// must have; ok is false where what it lacks, if anything, may be chance or the
// law does not reach so far. Chance is six standard deviations: a deficit that
// text alone makes once in 10^9 prompts. A deficit under 3 % may have other
// causes than a prompt cut short: a template, a cache, text of another kind.
func (l *law) shortBy(o observation) (tokens float64, ok bool) {
	if l.n < settled || o.bytes > 2*l.biggest {
		return 0, false
	}
	want := l.expect(o.bytes, o.messages)
	lacks := want - float64(o.tokens)
	return lacks, lacks > max(32, 6*l.spread(o), 0.03*want)
}

// fit solves the normal equations under the prior, within the bounds: a number
// that comes out beyond one is held there, and the others are solved for again.
func (l *law) fit() [3]float64 {
	var held [3]bool
	right := l.right
	for i := range right {
		right[i] += priorMean[i] * l.prior(i)
	}
	p := l.solve(right, held, [3]float64{})
	for range p {
		beyond := -1
		for _, i := range []int{1, 2, 0} {
			if !held[i] && (p[i] < least[i] || p[i] > most[i]) {
				beyond = i
				break
			}
		}
		if beyond < 0 {
			break
		}
		held[beyond] = true
		p[beyond] = min(max(p[beyond], least[beyond]), most[beyond])
		p = l.solve(right, held, p)
	}
	return p
}

// prior is the weight of what is assumed of a number.
func (l *law) prior(i int) float64 {
	spread := priorSpread[i]
	if i == 0 && l.hidden {
		spread = hiddenSpread
	}
	return 1 / (spread * spread)
}

// solve solves the equations with the right side b for the numbers that are
// not held at p.
func (l *law) solve(b [3]float64, held [3]bool, p [3]float64) [3]float64 {
	a := l.sums
	for i := range a {
		a[i][i] += l.prior(i)
	}
	for i := range held {
		if held[i] {
			a[i], b[i] = [3]float64{}, p[i]
			a[i][i] = 1
		}
	}
	// The matrix without what is held is symmetric and, thanks to the prior,
	// positive definite: elimination needs no pivoting.
	for i := range a {
		for r := range a {
			if r == i || held[r] {
				continue
			}
			f := a[r][i] / a[i][i]
			for c := range a {
				a[r][c] -= f * a[i][c]
			}
			b[r] -= f * b[i]
		}
	}
	for i := range p {
		p[i] = b[i] / a[i][i]
	}
	return p
}
