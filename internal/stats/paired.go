package stats

import (
	"math"
	"slices"
)

// Paired tests, pair by pair, whether the first value of each pair tends to be
// smaller than the second: whether answers come sooner when their prompt is
// expected in a cache. It may be looked at after every pair and stopped
// whenever it says enough: however long it runs, and whenever it is looked at,
// the chance that [Paired.P] is ever alpha or less is at most alpha, if within
// each pair both values could as well have come the other way round. Nothing is
// assumed of their distribution: not its tails, and not that it stays the same
// from pair to pair.
//
// It bets (Shafer 2021, "Testing by betting"; Ville 1939 for the bound). Shown
// a pair without being told which value is the first, it says from the pairs
// before with what chance the smaller one is, and its capital is multiplied by
// twice what it gave to what turns out. Under the null hypothesis no way of
// betting gains on average. Several ways of betting start with an equal share
// of the capital: on the order alone, and on the distance of the two in rank
// among all values before, more or less boldly.
type Paired struct {
	sorted []float64 // all values before, in order
	firsts []float64 // of them the first ones, in order
	wealth []float64 // logarithms of the capital of each way of betting
	wins   int       // pairs whose first value is smaller
	n      int       // pairs that are no ties
	best   float64   // logarithm of the greatest capital so far
}

// boldness are the ways of betting on the distance in rank: the odds of a
// distance of all ranks are e to this.
var boldness = [...]float64{0.5, 1, 2, 4, 8, 16}

// classes are the ways of betting on classes of values: where some of the first
// values are far below all second ones and the rest are like them, ranks say
// little. A value is added to every count, smooth of it.
var classes = [...]int{3, 6, 12, 24}

const smooth = 0.5

// Add takes the next pair. Values that are no numbers, and ties, say nothing.
func (t *Paired) Add(first, second float64) {
	if math.IsNaN(first) || math.IsNaN(second) || first == second {
		return
	}
	if t.wealth == nil {
		t.wealth = make([]float64, 1+len(boldness)+len(classes))
	}
	won := first < second
	bet := func(way int, chance float64) {
		if !won {
			chance = 1 - chance
		}
		t.wealth[way] += math.Log(2 * chance)
	}
	// The order alone: Krichevsky and Trofimov's estimate, never against the smaller.
	bet(0, max(0.5, (float64(t.wins)+0.5)/(float64(t.n)+1)))
	distance := math.Abs(t.rank(first) - t.rank(second))
	for i, b := range boldness {
		bet(i+1, 1/(1+math.Exp(-b*distance)))
	}
	for i, k := range classes {
		bet(1+len(boldness)+i, t.likelier(min(first, second), max(first, second), k))
	}
	t.n++
	if won {
		t.wins++
	}
	t.firsts = insert(t.firsts, first)
	t.sorted = insert(insert(t.sorted, first), second)
	t.best = max(t.best, t.capital())
}

// capital is the logarithm of the mean capital of all ways of betting.
func (t *Paired) capital() float64 {
	top := slices.Max(t.wealth)
	sum := 0.0
	for _, w := range t.wealth {
		sum += math.Exp(w - top)
	}
	return top + math.Log(sum/float64(len(t.wealth)))
}

// P is a p-value that holds at every look: one over the greatest capital so far.
func (t *Paired) P() float64 { return math.Exp(-t.best) }

// N is how many pairs have counted, and Wins in how many of them the first
// value was the smaller.
func (t *Paired) N() int { return t.n }

// Wins is in how many pairs the first value was the smaller.
func (t *Paired) Wins() int { return t.wins }

// rank is where a value stands among all before it, from 0 to 1.
func (t *Paired) rank(v float64) float64 {
	if len(t.sorted) == 0 {
		return 0.5
	}
	i, _ := slices.BinarySearch(t.sorted, v)
	return float64(i) / float64(len(t.sorted))
}

// likelier is the chance that the smaller of two values is the first, from how
// many first and second values were in their classes: k classes of about as
// many values each. It never bets against the smaller.
func (t *Paired) likelier(small, large float64, k int) float64 {
	if t.n < k {
		return 0.5
	}
	odds := t.ratio(small, k) / t.ratio(large, k)
	return max(0.5, odds/(1+odds))
}

// ratio is how much more frequent first values are than second ones in the
// class of a value.
func (t *Paired) ratio(v float64, k int) float64 {
	i, _ := slices.BinarySearch(t.sorted, v)
	class := min(i*k/len(t.sorted), k-1)
	from, to := class*len(t.sorted)/k, (class+1)*len(t.sorted)/k
	low, high := math.Inf(-1), math.Inf(1)
	if class > 0 {
		low = t.sorted[from]
	}
	if class < k-1 {
		high = t.sorted[to]
	}
	a, _ := slices.BinarySearch(t.firsts, low)
	b, _ := slices.BinarySearch(t.firsts, high)
	c, _ := slices.BinarySearch(t.sorted, low)
	d, _ := slices.BinarySearch(t.sorted, high)
	hits, all := float64(b-a), float64(d-c)
	return (hits + smooth) / (all - hits + smooth)
}

func insert(sorted []float64, v float64) []float64 {
	i, _ := slices.BinarySearch(sorted, v)
	return slices.Insert(sorted, i, v)
}
