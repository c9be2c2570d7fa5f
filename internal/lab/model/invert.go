package model

// Text reads the tokens of a page back from its layer-2 values alone: what anybody who gets
// hold of a page of KV cache can do. It gives pageSize tokens, DocStart where the values are
// zero. It is for pictures of the pool; nothing in the model uses it.
func (c *Cache) Text(i int32) []byte {
	page := c.Page(i)
	tokens := make([]byte, c.pageSize)
	for s := range tokens {
		tokens[s] = nearest(c.val2(page, s))
	}
	return tokens
}

// nearest is the token whose output code is most similar.
func nearest(value *[outDims]byte) byte {
	var x [outDims]float64
	for d, b := range value {
		x[d] = float64(int8(b))
	}
	transform(&x)
	best, similarity := DocStart, 0.0
	for v, s := range x {
		if s > similarity {
			best, similarity = v, s
		}
		if -s > similarity {
			best, similarity = v+outDims, -s
		}
	}
	return byte(best)
}
