/* Runs the test vectors through ../c/pagetag.h. Reads one case a line, made by
 * the Go test from vectors.json, and answers with one line each. */
#include "../c/pagetag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *why)
{
	fprintf(stderr, "bad case: %s\n", why);
	exit(1);
}

static uint64_t number(void)
{
	uint64_t v;
	if (scanf("%" SCNx64, &v) != 1)
		fail("number");
	return v;
}

static void hex(uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned v;
		if (scanf(" %2x", &v) != 1)
			fail("hex");
		to[i] = (uint8_t)v;
	}
}

static void show(const uint8_t *b, size_t n, char end)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", b[i]);
	putchar(end);
}

static pagetag_owner owner(void)
{
	pagetag_owner o;
	o.epoch = number();
	o.tenant = number();
	o.request = number();
	o.generation = number();
	o.space = (uint32_t)number();
	return o;
}

static pagetag_expected expected(void)
{
	pagetag_expected e;
	e.owner = owner();
	e.first = (uint32_t)number();
	e.tokens = number();
	e.page_tokens = (uint32_t)number();
	return e;
}

static void answer(pagetag_class c, size_t page, size_t n)
{
	printf("%s %ld\n", pagetag_class_name(c), page < n ? (long)page : -1L);
}

/* strength complete index length OWNER halves digest -> tag mark, both after a
 * turn through the decoder. */
static void run_tag(void)
{
	pagetag_tag t, back;
	uint8_t encoded[PAGETAG_SIZE], mark[PAGETAG_MARK_SIZE];
	uint64_t low, high;

	memset(&t, 0, sizeof t);
	t.strength = (uint8_t)number();
	t.complete = (uint8_t)number();
	t.at.index = (uint32_t)number();
	t.at.length = (uint32_t)number();
	t.owner = owner();
	low = number();
	high = number();
	hex(t.digest, sizeof t.digest);
	if (t.strength == PAGETAG_BY_ACCIDENT)
		pagetag_bind(&t, low, high, t.digest);
	pagetag_encode(&t, encoded);
	if (pagetag_parse(encoded, sizeof encoded, &back) != PAGETAG_OK)
		fail("tag that its own decoder refuses");
	pagetag_encode(&back, encoded);
	pagetag_mark_encode(pagetag_mark_parse((pagetag_mark_encode(pagetag_to_mark(&back), mark), mark)), mark);
	show(encoded, sizeof encoded, ' ');
	show(mark, sizeof mark, '\n');
}

/* EXPECTED n tags -> class page */
static void run_table(void)
{
	pagetag_expected e = expected();
	size_t n = (size_t)number(), page;
	uint8_t *tags = (uint8_t *)malloc(n * PAGETAG_SIZE + 1);
	pagetag_class c;

	hex(tags, n * PAGETAG_SIZE);
	c = pagetag_check_table(tags, n, &e, &page);
	answer(c, page, n);
	free(tags);
}

/* EXPECTED n marks -> class page */
static void run_marks(void)
{
	pagetag_expected e = expected();
	size_t n = (size_t)number(), page;
	pagetag_mark *marks = (pagetag_mark *)malloc((n + 1) * sizeof *marks);
	pagetag_class c;

	for (size_t i = 0; i < n; i++) {
		uint8_t b[PAGETAG_MARK_SIZE];
		hex(b, sizeof b);
		marks[i] = pagetag_mark_parse(b);
	}
	c = pagetag_check_marks(marks, n, &e, &page);
	answer(c, page, n);
	free(marks);
}

/* strength EXPECTED n (tag low high digest)... -> class page */
static void run_verify(void)
{
	uint8_t strength = (uint8_t)number();
	pagetag_expected e = expected();
	size_t n = (size_t)number(), page = n;
	pagetag_class c = PAGETAG_OK;

	for (size_t i = 0; i < n; i++) {
		uint8_t b[PAGETAG_SIZE], want[16];
		uint64_t low, high;
		pagetag_tag t;

		hex(b, sizeof b);
		low = number();
		high = number();
		hex(want, sizeof want);
		if (c != PAGETAG_OK)
			continue;
		c = pagetag_parse(b, sizeof b, &t);
		if (c == PAGETAG_OK && strength == PAGETAG_BY_ACCIDENT)
			pagetag_bind(&t, low, high, want);
		if (c == PAGETAG_OK)
			c = pagetag_verify(&t, &e.owner, pagetag_place_of(&e, i), strength, want);
		if (c != PAGETAG_OK)
			page = i;
	}
	answer(c, page, n);
}

int main(void)
{
	char what[16];

	while (scanf("%15s", what) == 1) {
		if (strcmp(what, "tag") == 0)
			run_tag();
		else if (strcmp(what, "table") == 0)
			run_table();
		else if (strcmp(what, "marks") == 0)
			run_marks();
		else if (strcmp(what, "verify") == 0)
			run_verify();
		else
			fail(what);
	}
	return 0;
}
