// Package canary mints text that names its owner, and finds it again.
//
// A canary is a text planted in a prompt, to be recognised if it turns up in
// an answer where it has no business. One secret in a prompt of a million
// tokens is a poor one: when a few stale pages leak, the secret is hardly ever
// on them. So here all filler of a prompt is canary. It looks like common
// English words in random order, and any [MinWords] of them in a row, found
// anywhere, give the exchange that they were planted in and the place in its
// prompt, by the key alone: there is no list of canaries to keep.
//
// A [Coder] of a [Key] mints words ([Coder.Words]), a short form for where
// text must be short ([Coder.Token]), and nonces to ask back ([Coder.Nonce]).
// [Coder.Scan], and a [Scanner] for streams, find words and tokens.
//
// # Construction
//
// A word is one of 4,096, 12 bits. The first six words of a canary are its
// [ID] of 34 bits, sealed with a 38-bit authenticator. Each later word is the
// one six before it, XOR 12 bits of a keyed function (SipHash-2-4) of the five
// between. That register runs both ways: a scanner that sees eight words in
// a row checks that the last two follow from those before, runs back until six
// words open as a sealed id, which gives id and place, and then on to see how
// far the canary goes. The seal is a Feistel network over five words; the
// remaining word is the same function's value there, so that a step back and
// the test for the beginning cost one function value together. Walks leave
// marks, so that the next one to the same canary is short.
//
// # Guarantees
//
//   - A pure function of key, id and place, in constant memory: never stored.
//   - Scanning cost does not depend on how many canaries exist, and the hits do
//     not depend on how a stream is cut into writes.
//   - Not hidden by: letter case; punctuation, digits, line breaks, Markdown
//     or any other separators between words; escapes of JSON and program text
//     (\n, \u0061, \x61), nested ones too; HTML character references;
//     characters without width; full-width, circled and mathematical letters.
//     ScanOptions.Decode looks into base64, hexadecimal and percent-encoding,
//     and between tags, terminal colours and the NULs of UTF-16.
//   - Hidden by: other words between the words, words run together, words
//     translated or misspelt, fewer than eight words in a row.
//   - Tokens are found with up to five letters of CANARY- cut off, in any case
//     and dress, with a plain dash or one of the Unicode dashes, which may have
//     a backslash before it; a dash written as an escape hides them, and so do
//     separators between the 16 characters.
//
// # False reports
//
// Eight random words of the list in a row are taken for a canary with
// probability below 2^-40: 2^-24 that two words follow from those before, times
// 2^21 ([MaxWords]) places to run back to, times 2^-38 that one opens. Ordinary
// text hardly ever has eight list words in a row. Sixteen random characters
// after "y-" are taken for a token with probability below 2^-48. A fragment
// that is genuine is credited to a wrong id with probability 2^-38 for each
// word between it and its beginning: below 2^-17 at the longest.
//
// # Without the key
//
// Nobody can make a canary, or tell canary text from random words, better than
// by breaking SipHash or by waiting for five words in a row to repeat, which
// takes about 2^30 words under one key; a repeat gives away one word. So nobody
// can frame a provider with made-up evidence. But whoever has seen a canary can
// show it again: a hit proves that text planted by the owner of the key got to
// where it was found, not by which way.
//
// The words of one key and id never change: the word list, the construction and
// the key derivation are part of the format.
package canary
