// Package canary mints and scans canary text: words of which any eight in a
// row, wherever they turn up, name the exchange and the place they were
// planted at.
package canary
