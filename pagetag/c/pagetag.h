/* SPDX-License-Identifier: Apache-2.0
 *
 * Owner-bound tags for pages of KV cache, format version 1: the format, the
 * ownership checks and the binding of digests, as docs/pagetag.md lays them
 * down. C99 or C++, one header, no library, no allocation.
 *
 * Not here: XXH3-128, for which every platform has a library, and AES. Both
 * kinds of digest come in from the caller: see pagetag_bind and pagetag_verify.
 *
 * Every check returns PAGETAG_OK or the reason to refuse. Anything but
 * PAGETAG_OK means: do not read the page.
 */
#ifndef PAGETAG_H
#define PAGETAG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAGETAG_VERSION 1
#define PAGETAG_SIZE 64        /* bytes of an encoded tag */
#define PAGETAG_HEADER 48      /* bytes of it that the digest binds */
#define PAGETAG_MARK_SIZE 16   /* bytes of an encoded mark */
#define PAGETAG_MAX_LENGTH 0xffffffu /* tokens in a page */

typedef enum {
	PAGETAG_OK,
	PAGETAG_ABSENT,
	PAGETAG_BAD_VERSION,
	PAGETAG_MALFORMED,
	PAGETAG_WRONG_EPOCH,
	PAGETAG_WRONG_TENANT,
	PAGETAG_WRONG_OWNER,
	PAGETAG_STALE_GENERATION,
	PAGETAG_WRONG_SPACE,
	PAGETAG_WRONG_INDEX,
	PAGETAG_INCOMPLETE,
	PAGETAG_LONG_PAGE,
	PAGETAG_WRONG_STRENGTH,
	PAGETAG_NO_DIGEST,
	PAGETAG_BAD_DIGEST,
	PAGETAG_SHORT_TABLE,
	PAGETAG_LONG_TABLE,
	PAGETAG_BAD_EXPECTATION
} pagetag_class;

/* A tag of strength 0 is absent. */
enum { PAGETAG_OWNER_ONLY = 1, PAGETAG_BY_ACCIDENT = 2, PAGETAG_BY_ADVERSARY = 3 };

typedef struct {
	uint64_t epoch, tenant, request, generation;
	uint32_t space;
} pagetag_owner;

typedef struct {
	uint32_t index;  /* of the page in the table of its owner */
	uint32_t length; /* valid tokens */
} pagetag_place;

typedef struct {
	uint8_t strength;
	uint8_t complete; /* 0 or 1 */
	pagetag_place at;
	pagetag_owner owner;
	uint8_t digest[16];
} pagetag_tag;

/* Two words a page, kept beside the pages of a pool. All zeros is absent. */
typedef struct {
	uint64_t owner, place;
} pagetag_mark;

/* The table a reader is about to read. */
typedef struct {
	pagetag_owner owner;
	uint32_t first;       /* index of the first page */
	uint64_t tokens;      /* that will be read, at least 1 */
	uint32_t page_tokens; /* in a full page, 1 to PAGETAG_MAX_LENGTH */
} pagetag_expected;

/* The name of a class as in the test vectors. */
static inline const char *pagetag_class_name(pagetag_class c)
{
	static const char *const names[] = {
		"accept", "absent", "bad_version", "malformed", "wrong_epoch", "wrong_tenant",
		"wrong_owner", "stale_generation", "wrong_space", "wrong_index", "incomplete",
		"long_page", "wrong_strength", "no_digest", "bad_digest", "short_table",
		"long_table", "bad_expectation",
	};
	return (size_t)c < sizeof names / sizeof *names ? names[c] : "unknown";
}

/* Little endian on every machine. */
static inline void pagetag_put(uint8_t *to, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (uint8_t)(v >> (8 * i));
}

static inline uint64_t pagetag_get(const uint8_t *from, int bytes)
{
	uint64_t v = 0;
	for (int i = 0; i < bytes; i++)
		v |= (uint64_t)from[i] << (8 * i);
	return v;
}

static inline int pagetag_known(uint8_t strength)
{
	return strength >= PAGETAG_OWNER_ONLY && strength <= PAGETAG_BY_ADVERSARY;
}

static inline void pagetag_header(const pagetag_tag *t, uint8_t out[PAGETAG_HEADER])
{
	pagetag_put(out, PAGETAG_VERSION, 1);
	pagetag_put(out + 1, t->strength, 1);
	pagetag_put(out + 2, t->complete ? 1 : 0, 2);
	pagetag_put(out + 4, t->at.index, 4);
	pagetag_put(out + 8, t->at.length, 4);
	pagetag_put(out + 12, t->owner.space, 4);
	pagetag_put(out + 16, t->owner.epoch, 8);
	pagetag_put(out + 24, t->owner.tenant, 8);
	pagetag_put(out + 32, t->owner.request, 8);
	pagetag_put(out + 40, t->owner.generation, 8);
}

static inline void pagetag_encode(const pagetag_tag *t, uint8_t out[PAGETAG_SIZE])
{
	memset(out, 0, PAGETAG_SIZE);
	if (t->strength == 0)
		return;
	pagetag_header(t, out);
	memcpy(out + PAGETAG_HEADER, t->digest, sizeof t->digest);
}

/* Decodes n bytes into t, which is left absent when they are refused. */
static inline pagetag_class pagetag_parse(const uint8_t *b, size_t n, pagetag_tag *t)
{
	static const uint8_t zero[16] = {0};
	pagetag_tag got;
	uint64_t flags;

	memset(t, 0, sizeof *t);
	if (n != PAGETAG_SIZE)
		return PAGETAG_MALFORMED;
	if (b[0] == 0)
		return PAGETAG_ABSENT;
	if (b[0] != PAGETAG_VERSION)
		return PAGETAG_BAD_VERSION;
	memset(&got, 0, sizeof got);
	flags = pagetag_get(b + 2, 2);
	got.strength = b[1];
	got.complete = (uint8_t)(flags & 1);
	got.at.index = (uint32_t)pagetag_get(b + 4, 4);
	got.at.length = (uint32_t)pagetag_get(b + 8, 4);
	got.owner.space = (uint32_t)pagetag_get(b + 12, 4);
	got.owner.epoch = pagetag_get(b + 16, 8);
	got.owner.tenant = pagetag_get(b + 24, 8);
	got.owner.request = pagetag_get(b + 32, 8);
	got.owner.generation = pagetag_get(b + 40, 8);
	memcpy(got.digest, b + PAGETAG_HEADER, sizeof got.digest);
	if (flags > 1 || !pagetag_known(got.strength) || got.at.length > PAGETAG_MAX_LENGTH)
		return PAGETAG_MALFORMED;
	if (got.strength == PAGETAG_OWNER_ONLY && memcmp(got.digest, zero, sizeof zero) != 0)
		return PAGETAG_MALFORMED;
	*t = got;
	return PAGETAG_OK;
}

static inline pagetag_class pagetag_check_length(int complete, uint32_t got, uint32_t want)
{
	if (!complete || got < want)
		return PAGETAG_INCOMPLETE;
	return got > want ? PAGETAG_LONG_PAGE : PAGETAG_OK;
}

/* Whether a reader that expects this owner's page at this place may read it.
 * Contents are not looked at. */
static inline pagetag_class pagetag_owns(const pagetag_tag *t, const pagetag_owner *o, pagetag_place at)
{
	if (t->strength == 0)
		return PAGETAG_ABSENT;
	if (!pagetag_known(t->strength))
		return PAGETAG_MALFORMED;
	if (t->owner.epoch != o->epoch)
		return PAGETAG_WRONG_EPOCH;
	if (t->owner.tenant != o->tenant)
		return PAGETAG_WRONG_TENANT;
	if (t->owner.request != o->request)
		return PAGETAG_WRONG_OWNER;
	if (t->owner.generation != o->generation)
		return PAGETAG_STALE_GENERATION;
	if (t->owner.space != o->space)
		return PAGETAG_WRONG_SPACE;
	if (t->at.index != at.index)
		return PAGETAG_WRONG_INDEX;
	return pagetag_check_length(t->complete, t->at.length, at.length);
}

/* Whether n pages are neither fewer nor more than what is expected. */
static inline pagetag_class pagetag_covers(const pagetag_expected *e, size_t n)
{
	uint64_t pages;

	if (e->tokens == 0 || e->page_tokens == 0 || e->page_tokens > PAGETAG_MAX_LENGTH)
		return PAGETAG_BAD_EXPECTATION;
	pages = (e->tokens - 1) / e->page_tokens + 1;
	if (pages > ((uint64_t)1 << 32) - e->first)
		return PAGETAG_BAD_EXPECTATION;
	if (n < pages)
		return PAGETAG_SHORT_TABLE;
	return n > pages ? PAGETAG_LONG_TABLE : PAGETAG_OK;
}

static inline pagetag_place pagetag_place_of(const pagetag_expected *e, size_t i)
{
	uint64_t left = e->tokens - (uint64_t)i * e->page_tokens;
	pagetag_place at;

	at.index = e->first + (uint32_t)i;
	at.length = left < e->page_tokens ? (uint32_t)left : e->page_tokens;
	return at;
}

/* Checks n encoded tags, one after another. *page is the first refused page, or
 * n if the refusal is about none of them; it may be NULL. */
static inline pagetag_class pagetag_check_table(const uint8_t *tags, size_t n, const pagetag_expected *e, size_t *page)
{
	pagetag_class c = pagetag_covers(e, n);
	pagetag_tag t;
	size_t i;

	if (page)
		*page = n;
	for (i = 0; c == PAGETAG_OK && i < n; i++) {
		c = pagetag_parse(tags + i * PAGETAG_SIZE, PAGETAG_SIZE, &t);
		if (c == PAGETAG_OK)
			c = pagetag_owns(&t, &e->owner, pagetag_place_of(e, i));
		if (c != PAGETAG_OK && page)
			*page = i;
	}
	return c;
}

#define PAGETAG_MARK_SEED UINT64_C(0x6a09e667f3bcc908)
#define PAGETAG_LOW_SEED UINT64_C(0xbb67ae8584caa73b)
#define PAGETAG_HIGH_SEED UINT64_C(0x3c6ef372fe94f82b)

static inline uint64_t pagetag_fold(uint64_t h, uint64_t word)
{
	h = (h ^ word) + UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

static inline uint64_t pagetag_owner_word(const pagetag_owner *o)
{
	uint64_t h = pagetag_fold(PAGETAG_MARK_SEED, o->epoch);
	h = pagetag_fold(h, o->tenant);
	h = pagetag_fold(h, o->request);
	h = pagetag_fold(h, o->generation);
	return pagetag_fold(h, o->space);
}

static inline uint64_t pagetag_place_word(pagetag_place at, int complete)
{
	return (uint64_t)PAGETAG_VERSION << 60 | (uint64_t)(complete ? 1 : 0) << 56 | (uint64_t)at.length << 32 | at.index;
}

static inline pagetag_mark pagetag_to_mark(const pagetag_tag *t)
{
	pagetag_mark m = {0, 0};

	if (!pagetag_known(t->strength) || t->at.length > PAGETAG_MAX_LENGTH)
		return m;
	m.owner = pagetag_owner_word(&t->owner);
	m.place = pagetag_place_word(t->at, t->complete);
	return m;
}

static inline void pagetag_mark_encode(pagetag_mark m, uint8_t out[PAGETAG_MARK_SIZE])
{
	pagetag_put(out, m.owner, 8);
	pagetag_put(out + 8, m.place, 8);
}

static inline pagetag_mark pagetag_mark_parse(const uint8_t b[PAGETAG_MARK_SIZE])
{
	pagetag_mark m;

	m.owner = pagetag_get(b, 8);
	m.place = pagetag_get(b + 8, 8);
	return m;
}

/* Why one mark is refused. */
static inline pagetag_class pagetag_mark_owns(pagetag_mark m, uint64_t owner_word, pagetag_place at)
{
	uint64_t version = m.place >> 60, complete = m.place >> 56 & 0xf;

	if (version == 0)
		return PAGETAG_ABSENT;
	if (version != PAGETAG_VERSION)
		return PAGETAG_BAD_VERSION;
	if (complete > 1)
		return PAGETAG_MALFORMED;
	if (m.owner != owner_word)
		return PAGETAG_WRONG_OWNER;
	if ((uint32_t)m.place != at.index)
		return PAGETAG_WRONG_INDEX;
	return pagetag_check_length(complete == 1, (uint32_t)(m.place >> 32) & PAGETAG_MAX_LENGTH, at.length);
}

/* Checks a whole table of marks: the check for every step. */
static inline pagetag_class pagetag_check_marks(const pagetag_mark *marks, size_t n, const pagetag_expected *e, size_t *page)
{
	pagetag_class c = pagetag_covers(e, n);
	uint64_t owner, differs = 0;
	pagetag_place full;
	size_t i;

	if (page)
		*page = n;
	if (c != PAGETAG_OK)
		return c;
	owner = pagetag_owner_word(&e->owner);
	full.length = e->page_tokens;
	for (i = 0; i + 1 < n; i++) {
		full.index = e->first + (uint32_t)i;
		differs |= (marks[i].owner ^ owner) | (marks[i].place ^ pagetag_place_word(full, 1));
	}
	differs |= (marks[i].owner ^ owner) | (marks[i].place ^ pagetag_place_word(pagetag_place_of(e, i), 1));
	if (differs == 0)
		return PAGETAG_OK;
	for (i = 0; i < n; i++) {
		c = pagetag_mark_owns(marks[i], owner, pagetag_place_of(e, i));
		if (c == PAGETAG_OK)
			continue;
		if (page)
			*page = i;
		return c;
	}
	return PAGETAG_MALFORMED; /* not reached: all 128 bits of a mark are judged above */
}

/* The digest by accident of a tag, from the two halves of the XXH3-128 of its
 * page: with xxhash.h, XXH128_hash_t h = XXH3_128bits(page, bytes), then low is
 * h.low64 and high is h.high64. */
static inline void pagetag_bind(const pagetag_tag *t, uint64_t low, uint64_t high, uint8_t digest[16])
{
	uint8_t header[PAGETAG_HEADER];
	uint64_t l = PAGETAG_LOW_SEED, h = PAGETAG_HIGH_SEED;

	pagetag_header(t, header);
	for (int i = 0; i < PAGETAG_HEADER; i += 8) {
		l = pagetag_fold(l, pagetag_get(header + i, 8));
		h = pagetag_fold(h, pagetag_get(header + i, 8));
	}
	pagetag_put(digest, low ^ l, 8);
	pagetag_put(digest + 8, high ^ h, 8);
}

/* Ownership and contents of one page. want is the digest the reader has made of
 * the bytes it holds, for this tag, in the one strength it accepts: pagetag_bind,
 * or AES as docs/pagetag.md says. */
static inline pagetag_class pagetag_verify(const pagetag_tag *t, const pagetag_owner *o, pagetag_place at,
	uint8_t strength, const uint8_t want[16])
{
	pagetag_class c = pagetag_owns(t, o, at);
	uint8_t differs = 0;

	if (c != PAGETAG_OK)
		return c;
	if (t->strength == PAGETAG_OWNER_ONLY)
		return PAGETAG_NO_DIGEST;
	if (t->strength != strength)
		return PAGETAG_WRONG_STRENGTH;
	for (int i = 0; i < 16; i++) /* in constant time */
		differs |= (uint8_t)(t->digest[i] ^ want[i]);
	return differs ? PAGETAG_BAD_DIGEST : PAGETAG_OK;
}

#ifdef __cplusplus
}
#endif
#endif
