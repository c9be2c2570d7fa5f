package model

// A position p turns pair i of u = (1,0, 1,0, ...) by the angle p*theta_i with
// theta_i = 10000^(-i/16) = 10^(-i/4): the ordinary rotary embedding, base 10^4.
//
// The similarity of two positions at distance D is S(D) = sum_i cos(D*theta_i):
// S(0) = 16, S(1) = 15.314, and at most 13.73 from there to 1.1 million.

// rotary holds e^(i*theta*p) for the digits of p in base 128: three factors make any
// position below MaxPosition. The factors come from a Taylor series and from
// products, each rounded explicitly: the same bits on every machine, and within
// 1e-9 of the exact value.
type rotary struct {
	digit [3][128][pairs]turn
}

// turn is a rotation by an angle: a complex number of length 1.
type turn struct{ cos, sin float64 }

func (a turn) then(b turn) turn {
	return turn{
		cos: float64(a.cos*b.cos) - float64(a.sin*b.sin),
		sin: float64(a.cos*b.sin) + float64(a.sin*b.cos),
	}
}

func newRotary() *rotary {
	r := new(rotary)
	for i := range pairs {
		step := turnBy(theta(i))
		for level := range r.digit {
			table := &r.digit[level]
			at := turn{cos: 1}
			for d := range table {
				table[d][i] = at
				at = at.then(step)
			}
			step = at // 128 steps make one step of the next digit
		}
	}
	return r
}

// theta is the angle of pair i for one position, radians.
func theta(i int) float64 {
	quarters := [4]float64{1, 0.5623413251903491, 0.31622776601683794, 0.17782794100389228}
	powers := [4]float64{1, 10, 100, 1000}
	return quarters[i%4] / powers[i/4]
}

// turnBy sums the Taylor series of cosine and sine, angle in [0, 1].
func turnBy(angle float64) turn {
	t := turn{}
	term := 1.0
	for k := range 24 {
		switch k % 4 {
		case 0:
			t.cos += term
		case 1:
			t.sin += term
		case 2:
			t.cos -= term
		case 3:
			t.sin -= term
		}
		term = term * angle / float64(k+1)
	}
	return t
}

// vector is a layer-1 key or query: pairs of cosine and sine.
type vector [2 * pairs]float32

// positions makes the vectors R_p u of nearby positions; it keeps the part that 128
// neighbours share.
type positions struct {
	r     *rotary
	block int
	high  [pairs]turn
}

func (r *rotary) positions() positions {
	return positions{r: r, block: -1}
}

// vector stores R_p u in v. Positions before the start of a sequence are turned
// backwards; no key lies there.
//
//go:norace
func (ps *positions) vector(p int, v *vector) {
	back := p < 0
	if back {
		p = -p
	}
	if block := p >> 7; block != ps.block {
		ps.block = block
		for i := range ps.high {
			ps.high[i] = ps.r.digit[1][block&127][i].then(ps.r.digit[2][block>>7][i])
		}
	}
	low := &ps.r.digit[0][p&127]
	for i := range ps.high {
		t := low[i].then(ps.high[i])
		v[2*i], v[2*i+1] = float32(t.cos), float32(t.sin)
		if back {
			v[2*i+1] = -v[2*i+1]
		}
	}
}

// similarity is the inner product of two vectors.
//
//go:norace
func similarity(a, b *vector) float32 {
	var s0, s1, s2, s3 float32
	for i := 0; i < len(a); i += 4 {
		s0 += float32(a[i] * b[i])
		s1 += float32(a[i+1] * b[i+1])
		s2 += float32(a[i+2] * b[i+2])
		s3 += float32(a[i+3] * b[i+3])
	}
	return (s0 + s1) + (s2 + s3)
}
