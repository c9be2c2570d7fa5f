package campaign

// ratio estimates token counts from bytes by what was seen last; the client's
// estimator takes its place.
type ratio struct{ perByte float64 }

func (r *ratio) Observe(bytes int64, _ int, tokens int) {
	r.perByte = float64(tokens) / float64(max(1, bytes))
}

func (r *ratio) Estimate(bytes int64, messages int) float64 {
	if r.perByte == 0 {
		return float64(bytes)/4 + 4*float64(messages)
	}
	return r.perByte * float64(bytes)
}
