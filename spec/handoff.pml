/*
 * The handoff of KV-cache pages from prefill to decode, as an independent model
 * for Spin. It is written from the text of the protocol (README.md beside it),
 * not from the machines in internal/lab/handoff, so that the two can disagree.
 *
 * A request q is 0..N-1 and is its room, unless ids are reused. Everything that
 * happens at one node at once is one d_step. Names: P is prefill, D is decode,
 * R is the router. The switches are macros, see README.md.
 */

/* ---- Size: a configuration may set each of these ------------------------- */

#ifndef N
#define N 3             /* requests, at most 4; request 1 is tenant b, the others a */
#endif
#ifndef PAGE
#define PAGE 1          /* tokens a page */
#endif
#ifndef DPAGES
#define DPAGES 3        /* pages of decode's pool, at most 4 */
#endif
#ifndef PPAGES
#define PPAGES 3        /* pages of prefill's pool, at most 4 */
#endif
#ifndef LEN0
#define LEN0 2          /* prompt of each request in tokens, at most W pages */
#endif
#ifndef LEN1
#define LEN1 1
#endif
#ifndef LEN2
#define LEN2 2
#endif
#ifndef LEN3
#define LEN3 1
#endif
#ifndef PLIMIT
#define PLIMIT 99       /* tokens: prefill refuses longer prompts */
#endif
#ifndef ABORTS
#define ABORTS 1        /* clients that leave, or requests whose time is up */
#endif
#ifndef LEAVES
#define LEAVES 15       /* which requests may be aborted, one bit each */
#endif
#ifndef LOSSES
#define LOSSES 0        /* control messages between P and D that are lost */
#endif
#ifndef DUPS
#define DUPS 0          /* ... that are delivered twice */
#endif
#ifndef CRASHES
#define CRASHES 0       /* processes killed, P or D */
#endif

#define W 2             /* pages of the longest request */

/* ---- Switches: a fault removes, a defence adds back ----------------------- */

#if defined(STALE_RESERVE) || defined(LATE_WRITE) || defined(STALE_SOURCE) || \
    defined(DOUBLE_OWNER) || defined(ID_REUSE)
#define FAULTY          /* only the defences that are named are on */
#endif

#define AT_RESERVE 1    /* TAGS: decode stamps a page when it reserves it */
#define BY_WRITER 2     /*       prefill stamps its page when it has filled it; the tag travels with the bytes */
#define BY_TRANSPORT 3  /*       whoever moves the page stamps what it was asked to move */
#define SENDER 1        /* CHECKSUM: over the pages that were sent */
#define RECEIVER 2      /*           over the pages that were reserved */
#define SKIP 1          /* CHECKSUM_ABSENT: a placeholder's transfer has none, that passes */
#define REJECT 2        /*                  ... that is refused */

#ifndef FAULTY
#ifndef WITHOUT_COVERAGE
#define COVERAGE
#endif
#ifndef WITHOUT_GENERATIONS
#define GENERATIONS
#endif
#if !defined(TAGS) && !defined(WITHOUT_TAGS)
#define TAGS BY_WRITER
#endif
#endif

/* What stands unless its own fault is there and the defence against it is not. */
#if !defined(STALE_RESERVE) || defined(RETIRE)
#define REFUSES         /* a prompt that is too long is turned away at P's door */
#endif
#if (!defined(LATE_WRITE) || defined(QUIESCE)) && !defined(WITHOUT_QUIESCE)
#define DRAINS          /* pages that may still be written to are not free */
#endif
#if (!defined(ID_REUSE) || defined(UNIQUE_IDS)) && !defined(WITHOUT_UNIQUE_IDS)
#define MINTS           /* R mints rooms; otherwise requests 0 and 1 bring the same id */
#endif

#ifndef TAGS
#define TAGS 0
#endif
#ifndef CHECKSUM_ABSENT
#define CHECKSUM_ABSENT 0
#elif !defined(CHECKSUM)
#define CHECKSUM RECEIVER
#endif
#ifndef CHECKSUM
#define CHECKSUM 0
#endif

/* ---- How a check is taken: recorded (all in one run), or WATCHed (a trace) --
 * Number k is invariant Ik; number 0 is that no check of the engine fires. */

#if defined(WATCH)
#define CHECK(k, c) if :: (WATCH == k) -> assert(c) :: else fi
#else
c_decl { static unsigned seen; }
#define CHECK(k, c) if :: !(c) -> c_code { if (!(seen & 1u << k)) { seen |= 1u << k; printf("recorded %d\n", k); } } :: else fi
#endif

#ifdef STORY
#define SAY0(text) printf(text)
#define SAY(text, a) printf(text, a)
#define SAY2(text, a, b) printf(text, a, b)
#define SAY3(text, a, b, c) printf(text, a, b, c)
#else
#define SAY0(text) skip
#define SAY(text, a) skip
#define SAY2(text, a, b) skip
#define SAY3(text, a, b, c) skip
#endif

/* ---- Requests and pages ---------------------------------------------------- */

#define BIT(q) (1 << (q))
#define LEN(q) ((q) == 0 -> LEN0 : ((q) == 1 -> LEN1 : ((q) == 2 -> LEN2 : LEN3)))
#define UP(n) (((n) + PAGE - 1) / PAGE)                     /* pages that n tokens take */
#define PAGES(q) UP(LEN(q))                                 /* pages that D reserves */
#define TOOLONG(q) (LEN(q) > PLIMIT)
#define SENT(q) (TOOLONG(q) -> 1 : LEN(q))                  /* tokens that P sends: a placeholder is one */
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define INPAGE(n, i) ((n) > (i) * PAGE -> MIN(PAGE, (n) - (i) * PAGE) : 0)  /* of n tokens, those in page i */

/* What a page holds: what request it was written for, as which page. 0: nothing. */
#define CODE(q, i) ((q) * W + (i) + 1)
#define WRITER(c) (((c) - 1) / W)
#define INDEX(c) (((c) - 1) % W)

#define COUNT(m) (((m) & 1) + (((m) >> 1) & 1) + (((m) >> 2) & 1) + (((m) >> 3) & 1))
#define NODE_D (BIT(DPAGES) - 1)
#define NODE_P (BIT(PPAGES) - 1)

/* ---- State ------------------------------------------------------------------- */

/* R: what it knows of a request. */
#define R_NEW 0
#define R_LIVE 1
#define R_END 2         /* its client has an answer or an error, or has left */
byte rs[N];
byte next;              /* requests come in this order */

/* P: where a room is. */
#define P_NONE 0
#define P_WAIT 1        /* let in, Hello sent */
#define P_LEASED 2      /* Reserved came, waits for pages of its own */
#define P_SEND 3        /* writes under way */
#define P_SENT 4        /* Meta sent, waits for Ack */
#define P_STOP 5        /* gone, but writes under way still read its pages */
byte ps[N];
byte pfree = NODE_P;    /* P's free pages */
byte pw[PPAGES];        /* what each of P's pages holds */
byte src[N * W];        /* P's pages of a room, plus one */
#ifdef MINTS
#define FROM(q) (q)
#else
byte from[N];           /* whose lease P writes under, when ids repeat */
#define FROM(q) from[q]
#endif
byte owe;               /* rooms that D waits to hear Gone of */
byte fly;               /* writes under way, one bit a room and index */

/* D: where a room is. */
#define D_NONE 0
#define D_SUB 1         /* Submit came, Hello did not */
#define D_QUEUE 2       /* both came, waits for pages */
#define D_RES 3         /* leased to P */
#define D_RUN 4         /* committed */
#define D_READ 5        /* split_read: its tags are checked, its pages not yet read */
#define D_DRAIN 6       /* gone, but P may still write to its pages */
#define D_OVER 7        /* double_owner: ended, the table still at hand */
byte ds[N];
byte hello;             /* rooms whose Hello came before their Submit */
byte high;              /* one more than the highest room that Submit came for */
byte dfree = NODE_D;    /* D's free pages */
#ifdef DOUBLE_OWNER
byte dfree2;            /* the second time that a page is on the free list */
byte holder[DPAGES];    /* of a page in two tables, whose lease is the later, plus one */
#else
#define dfree2 0
#endif
byte dw[DPAGES];        /* what each of D's pages holds */
byte lease[N * W];      /* D's pages of a room, plus one: D's table, the content of Reserved, where P writes */
#ifdef GENERATIONS
byte gen[DPAGES];       /* of each page, raised at every allocation */
byte leasegen[N * W];   /* generations in the lease */
byte taggen[DPAGES];    /* generation in each page's tag */
#endif
#if TAGS == AT_RESERVE || TAGS == BY_TRANSPORT || defined(TAG_LAST)
#define DTAG
#endif
#ifdef DTAG
byte dtag[DPAGES];      /* tag of each page, where it is not what the page holds */
#endif
#ifdef TORN
byte half;              /* D's pages in the middle of a write */
byte begun;             /* writes that have begun to land */
#endif

/* Messages between P and D: sets, so that any may overtake any. One bit a room. */
byte mHello, mMeta, mGone;              /* to D */
byte mReserved, mAck, mQuiesce;         /* to P */

/* Messages to and from R: in order, exactly once, until an end dies. */
#define SUBMIT 0
#define ABORT 4
#define REFUSED 8
#define TOKEN 12
#define DONE 16
#define FAIL 20
#define MIXED 32        /* added: carries something of another request */
chan rp = [2 * N] of { byte };
chan rd = [2 * N] of { byte };
chan pr = [N] of { byte };
chan dr = [2 * N] of { byte };

/* Deaths: who is up, and who has still to hear of a death. */
#if CRASHES
bit pUp = 1;
bit dUp = 1;
bit rLostP, rLostD;     /* R has still to notice */
bit pLost;              /* P has still to notice that D died */
bit dLost, dReset;      /* D has still to notice that P died; that a new P is there */
#else
#define pUp 1
#define dUp 1
#define rLostP 0
#define rLostD 0
#define pLost 0
#define dLost 0
#define dReset 0
#endif

/* What may still go wrong. */
byte aborts = ABORTS;
#if LOSSES
byte losses = LOSSES;
#define LOST (losses < LOSSES)
#else
#define LOST false
#endif
#if DUPS
byte dups = DUPS;
#endif
#if CRASHES
byte crashes = CRASHES;
#define UNHARMED (!LOST && crashes == CRASHES)
#else
#define UNHARMED !LOST
#endif

/* Scratch of a d_step, no part of a state. Spin's breadth-first search wants none hidden. */
#ifdef WATCH
#define SCRATCH byte
#else
#define SCRATCH hidden byte
#endif
SCRATCH e, i, k, x, y, c, ok, mixed;

/* ---- Who is meant: a room finds its latest holder ------------------------------ */

#ifdef MINTS
#define ROOM(q) (q)
#define ATR(q) (q)
#define ATP(q) (q)
#define ATD(q) (q)
#else
#define ROOM(q) ((q) < 2 -> 0 : (q))
#define ATR(q) ((q) < 2 -> (rs[1] == R_LIVE -> 1 : 0) : (q))
#define ATP(q) ((q) < 2 -> (ps[1] != P_NONE -> 1 : 0) : (q))
#define ATD(q) ((q) < 2 -> (HELD(1) -> 1 : 0) : (q))
#endif
#define HELD(q) (ds[q] >= D_SUB && ds[q] <= D_READ)

#define CAND(q) (rs[q] == R_LIVE)
#if N == 2
#define LIVE (CAND(0) || CAND(1))
#elif N == 3
#define LIVE (CAND(0) || CAND(1) || CAND(2))
#else
#define LIVE (CAND(0) || CAND(1) || CAND(2) || CAND(3))
#endif

/* Whether D's page x is in the table of q; or owned by q; or of anybody. */
#define INTABLE(q, x) (lease[(q) * W] == (x) + 1 || lease[(q) * W + 1] == (x) + 1)
#define OWNS(q, x) (ds[q] >= D_RES && ds[q] <= D_READ && INTABLE(q, x))
#define DRAINING(q, x) (ds[q] == D_DRAIN && INTABLE(q, x))
#if N == 2
#define OWNED(x) (OWNS(0, x) || OWNS(1, x))
#define DRAINED(x) (DRAINING(0, x) || DRAINING(1, x))
#elif N == 3
#define OWNED(x) (OWNS(0, x) || OWNS(1, x) || OWNS(2, x))
#define DRAINED(x) (DRAINING(0, x) || DRAINING(1, x) || DRAINING(2, x))
#else
#define OWNED(x) (OWNS(0, x) || OWNS(1, x) || OWNS(2, x) || OWNS(3, x))
#define DRAINED(x) (DRAINING(0, x) || DRAINING(1, x) || DRAINING(2, x) || DRAINING(3, x))
#endif

#define FLIES(q) ((fly >> ((q) * W)) & (BIT(W) - 1))

/* Links: a node sends into the void when its end is dead, and hears nothing before it knows. */
#define TOD(m, q) if :: dUp && !pLost -> m = m | BIT(q) :: else fi
#define TOP(m, q) if :: pUp && !dLost && !dReset -> m = m | BIT(q) :: else fi
#define D_HEARS (dUp && !dLost && !dReset)
#define P_HEARS (pUp && !pLost)

#ifdef MINTS
#define UNSHARED(q) true
#else
#define UNSHARED(q) ((q) >= 2)  /* another request may still write under it */
#endif

/* Forgets a lease that nobody can use any more, so that equal states are equal. */
inline tidy(q) {
	if
	:: ds[q] < D_RES && ps[q] < P_LEASED && !(mReserved & BIT(q)) && !FLIES(q) && UNSHARED(q) ->
		k = 0;
		do
		:: k < W ->
			lease[(q) * W + k] = 0;
			src[(q) * W + k] = 0;
#ifdef GENERATIONS
			leasegen[(q) * W + k] = 0;
#endif
			k++
		:: else -> break
		od
	:: else
	fi
}

/* ---- D ------------------------------------------------------------------------- */

#define NFREE (COUNT(dfree) + COUNT(dfree2))

inline give(x) {  /* page x goes back to the free list */
#ifdef DOUBLE_OWNER
	if
	:: dfree & BIT(x) -> dfree2 = dfree2 | BIT(x)
	:: else -> dfree = dfree | BIT(x)
	fi
#else
	dfree = dfree | BIT(x)
#endif
}

inline take(x) {
#ifdef DOUBLE_OWNER
	if
	:: dfree2 & BIT(x) -> dfree2 = dfree2 & ~BIT(x)
	:: else -> dfree = dfree & ~BIT(x)
	fi
#else
	dfree = dfree & ~BIT(x)
#endif
}

/* Leases pages to room q. A refused request must never get here. */
inline reserve(q) {
	CHECK(2, !TOOLONG(q));
	i = 0;
	x = 0;
	do
	:: i < PAGES(q) ->
		do
		:: dfree & BIT(x) -> break
		:: else -> x++
		od;
		CHECK(3, !OWNED(x));
		take(x);
		lease[(q) * W + i] = x + 1;
#ifdef DOUBLE_OWNER
		holder[x] = q + 1;
#endif
#ifdef GENERATIONS
		gen[x]++;
		leasegen[(q) * W + i] = gen[x];
#endif
#ifdef ZERO_ON_ALLOC
		dw[x] = 0;
#endif
#if TAGS == AT_RESERVE
		dtag[x] = CODE(q, i);
#endif
		SAY3("D: page %d is reserved for request %d as its page %d\n", x, q, i);
		i++
	:: else -> break
	od;
	ds[q] = D_RES;
	TOP(mReserved, q)
}

inline release(q) {  /* the pages of q are free */
	i = 0;
	do
	:: i < PAGES(q) ->
		x = lease[(q) * W + i] - 1;
		give(x);
		i++
	:: else -> break
	od
}

/* Room q ends while P may still write: its pages belong to nobody until P says Gone. */
inline drain(q) {
#ifdef M_LOSE
	ds[q] = D_NONE;
	TOP(mQuiesce, q)
#else
#ifdef DRAINS
	ds[q] = D_DRAIN;
	SAY("D: the pages of request %d drain\n", q);
	TOP(mQuiesce, q)
#else
	release(q);
	ds[q] = D_NONE;
	SAY("D: the pages of request %d are free at once\n", q)
#endif
#endif
}

inline over(q) {  /* room q has run to its end, or failed in a step */
	release(q);
#ifdef DOUBLE_OWNER
	ds[q] = D_OVER
#else
	ds[q] = D_NONE
#endif
}

inline onSubmit(q) {
	high = (ROOM(q) >= high -> ROOM(q) + 1 : high);
	if
	:: hello & BIT(q) -> ds[q] = D_QUEUE
	:: else -> ds[q] = D_SUB
	fi;
	hello = hello & ~(BIT(q + 1) - 1);  /* Submits ascend: those below will not come any more */
	SAY("D: hears Submit of request %d\n", q)
}

inline onAbort(q) {
	SAY("D: hears Abort of request %d\n", q);
	e = ATD(q);
	if
	:: ds[e] == D_SUB || ds[e] == D_QUEUE -> ds[e] = D_NONE
	:: ds[e] == D_RES -> drain(e)
	:: ds[e] == D_RUN || ds[e] == D_READ -> release(e); ds[e] = D_NONE
	:: ds[e] == D_OVER -> release(e); ds[e] = D_NONE; SAY("D: frees the pages of request %d once more\n", e)
	:: else
	fi;
	tidy(e)
}

inline onHello(q) {
	e = ATD(q);
	if
	:: ds[e] == D_SUB -> ds[e] = D_QUEUE
	:: HELD(e) || ROOM(q) < high -> skip  /* late */
	:: else -> hello = hello | BIT(q)
	fi;
	SAY("D: hears Hello of request %d\n", q)
}

/* What the tag of D's page x says, for whom, and whether it is whole. */
#ifdef DTAG
#define TAG(x) dtag[x]
#else
#define TAG(x) dw[x]
#endif
#ifdef TORN
#define WHOLE(x) !(half & BIT(x))
#else
#define WHOLE(x) true
#endif
#ifdef TAG_LAST
#define CLOSED(x) true  /* nothing tells that a write has begun */
#else
#define CLOSED(x) WHOLE(x)
#endif
#ifdef GENERATIONS
#define GENERATION(q, i, x) (taggen[x] == leasegen[(q) * W + (i)])
#else
#define GENERATION(q, i, x) true
#endif
#define ENOUGH(w, q, i) (INPAGE(SENT(w), i) >= INPAGE(LEN(q), i))

#if TAGS == AT_RESERVE
#define TAGGED(q, i, x) (TAG(x) == CODE(q, i))
#else
#define TAGGED(q, i, x) (TAG(x) != 0 && ROOM(WRITER(TAG(x))) == ROOM(q) && INDEX(TAG(x)) == (i) && \
	ENOUGH(WRITER(TAG(x)), q, i) && GENERATION(q, i, x) && CLOSED(x))
#endif

inline checkTags(q) {  /* ok, unless a page of q's table is not tagged as q's */
#if TAGS
	i = 0;
	do
	:: i < PAGES(q) ->
		x = lease[(q) * W + i] - 1;
		if
		:: !TAGGED(q, i, x) -> ok = 0; SAY2("D: page %d has not the tag of request %d\n", x, q)
		:: else
		fi;
		i++
	:: else -> break
	od
#else
	skip
#endif
}

/* ok, unless the pages of q are not what m's sender has digested. */
inline checkSum(q, m) {
#if CHECKSUM
#if CHECKSUM_ABSENT == SKIP
	if :: TOOLONG(m) -> skip :: else ->
#elif CHECKSUM_ABSENT == REJECT
	if :: TOOLONG(m) -> ok = 0 :: else ->
#else
	if :: true ->
#endif
		i = 0;
		do
#if CHECKSUM == SENDER
		:: i < PAGES(q) && i < UP(SENT(m)) ->
#else
		:: i < PAGES(q) ->
#endif
			x = lease[(q) * W + i] - 1;
			if
			:: i >= UP(SENT(m)) || dw[x] != CODE(m, i) -> ok = 0; SAY("D: the checksum of request %d differs\n", q)
			:: else
			fi;
			i++
		:: else -> break
		od
	fi
#else
	skip
#endif
}

/* Ends q with an error, because a check says that its pages are not its own. */
inline alarm(q) {
	CHECK(0, false);
	dr!FAIL + q;
	SAY("D: request %d is ended with 500\n", q)
}

/* Meta of m: commits its room, or fails it. */
inline onMeta(m) {
	e = ATD(m);
	if
	:: ds[e] == D_RES ->
		ok = 1;
#ifdef COVERAGE
		if
		:: SENT(m) != LEN(e) -> ok = 0; SAY("D: the transfer does not cover request %d\n", e)
		:: else
		fi;
#endif
		checkTags(e);
		checkSum(e, m);
		if
		:: ok ->
			ds[e] = D_RUN;
			TOP(mAck, e);
			dr!TOKEN + e + (m != e -> MIXED : 0);
			SAY("D: commits request %d and sends its first token\n", e)
		:: else ->
			drain(e);
			alarm(e)
		fi
	:: else -> SAY("D: hears Meta of request %d too late\n", m)
	fi;
	tidy(e)
}

inline onGone(q) {
	SAY("D: hears Gone of request %d\n", q);
	k = 0;
#ifdef MINTS
	if
	:: ds[q] == D_DRAIN -> release(q); ds[q] = D_NONE
	:: else
	fi;
	tidy(q)
#else
	e = 0;
	do
	:: e < N ->
		if
		:: ROOM(e) == ROOM(q) && ds[e] == D_DRAIN -> release(e); ds[e] = D_NONE; tidy(e)
		:: else
		fi;
		e++
	:: else -> break
	od;
	skip
#endif
}

/* A step of q begins with a look at the tags of its whole table. */
inline look(q) {
	ok = 1;
	checkTags(q);
	if
	:: ok -> ds[q] = D_READ
	:: else -> alarm(q); over(q)
	fi;
	tidy(q)
}

/* Then it reads every page of the table. */
inline read(q) {
	mixed = 0;
	i = 0;
	do
	:: i < PAGES(q) ->
		x = lease[(q) * W + i] - 1;
		CHECK(1, dw[x] == CODE(q, i) && ENOUGH(q, q, i) && WHOLE(x));
		if
		:: dw[x] != 0 && WRITER(dw[x]) != q -> mixed = 1; SAY3("D: request %d reads page %d, which holds what request %d wrote\n", q, x, WRITER(dw[x]))
		:: dw[x] == 0 -> SAY2("D: request %d reads page %d, which holds what nobody wrote\n", q, x)
		:: else
		fi;
		i++
	:: else -> break
	od;
	dr!DONE + q + (mixed -> MIXED : 0);
	SAY("D: request %d has run to its end\n", q);
	over(q);
	tidy(q)
}

/* Both at once, unless split_read: nothing lands between. */
inline step(q) {
	look(q);
	if
	:: ds[q] == D_READ -> read(q)
	:: else
	fi
}

#define DQ(q) (ds[q] == D_QUEUE)
#define CANRESERVE(q) (DQ(q) && NFREE >= PAGES(q) && \
	((q) == 0 || !DQ(0)) && ((q) <= 1 || !DQ(1)) && ((q) <= 2 || !DQ(2)))

active [N] proctype Decode() {
#define me (_pid)
end:	do
	:: d_step { rd?eval(SUBMIT + me) -> onSubmit(me) }
	:: d_step { rd?eval(ABORT + me) -> onAbort(me) }
	:: d_step { D_HEARS && (mHello & BIT(me)) -> mHello = mHello & ~BIT(me); onHello(me) }
	:: d_step { D_HEARS && (mMeta & BIT(me)) -> mMeta = mMeta & ~BIT(me); onMeta(me) }
	:: d_step { D_HEARS && (mGone & BIT(me)) -> mGone = mGone & ~BIT(me); onGone(me) }
	:: d_step { CANRESERVE(me) -> reserve(me) }
#ifdef M_TIMEOUT
	:: d_step { ds[me] == D_DRAIN -> release(me); ds[me] = D_NONE; tidy(me) }
#endif
#ifdef SPLIT_READ
	:: d_step { ds[me] == D_RUN -> look(me) }
	:: d_step { ds[me] == D_READ -> read(me) }
#else
	:: d_step { ds[me] == D_RUN -> step(me) }
#endif
#if DUPS
	:: d_step { dups && D_HEARS && (mHello & BIT(me)) -> dups--; onHello(me) }
	:: d_step { dups && D_HEARS && (mMeta & BIT(me)) -> dups--; onMeta(me) }
	:: d_step { dups && D_HEARS && (mGone & BIT(me)) -> dups--; onGone(me) }
#endif
#if LOSSES
	:: d_step { losses && (mHello & BIT(me)) -> losses--; mHello = mHello & ~BIT(me); SAY("-: Hello of request %d is lost\n", me) }
	:: d_step { losses && (mMeta & BIT(me)) -> losses--; mMeta = mMeta & ~BIT(me); SAY("-: Meta of request %d is lost\n", me) }
	:: d_step { losses && (mGone & BIT(me)) -> losses--; mGone = mGone & ~BIT(me); SAY("-: Gone of request %d is lost\n", me) }
#endif
	od
#undef me
}

/* ---- P ------------------------------------------------------------------------- */

inline pGive(q) {  /* P's pages of room q are free */
#ifndef STALE_SOURCE
	k = 0;
	do
	:: k < UP(SENT(q)) -> pfree = pfree | BIT(src[(q) * W + k] - 1); src[(q) * W + k] = 0; k++
	:: else -> break
	od
#else
	skip
#endif
}

inline pSubmit(q) {
#ifdef REFUSES
	if
	:: TOOLONG(q) -> pr!REFUSED + q; SAY("P: refuses request %d\n", q)
	:: else -> ps[q] = P_WAIT; TOD(mHello, q); SAY("P: lets request %d in\n", q)
	fi
#else
	ps[q] = P_WAIT;
	TOD(mHello, q);
	if
	:: TOOLONG(q) -> SAY("P: refuses request %d, puts a placeholder in its place and goes on\n", q)
	:: else -> SAY("P: lets request %d in\n", q)
	fi
#endif
}

inline hears(q, gone) {  /* D is to hear Gone when the writes are complete */
#ifdef M_GONE_EARLY
	if
	:: gone -> TOD(mGone, q)
	:: else
	fi
#else
	owe = owe | ((gone) << (q))
#endif
}

/* Room q is told to stop, by R or by D, who wants to hear Gone. */
inline pStop(q, gone) {
	if
	:: ps[q] == P_SEND && FLIES(q) -> ps[q] = P_STOP; hears(q, gone)
	:: ps[q] == P_STOP -> hears(q, gone)
	:: else ->
		if
		:: ps[q] == P_SEND || ps[q] == P_SENT -> pGive(q)
		:: else
		fi;
		ps[q] = P_NONE;
		if
		:: gone -> TOD(mGone, q)
		:: else
		fi
	fi;
	tidy(q)
}

inline pCompute(q) {
	CHECK(2, !TOOLONG(q));
	i = 0;
	y = 0;
	do
	:: i < UP(SENT(q)) ->
		do
		:: pfree & BIT(y) -> break
		:: else -> y++
		od;
#ifndef STALE_SOURCE
		pfree = pfree & ~BIT(y);
#endif
		pw[y] = CODE(q, i);
		src[(q) * W + i] = y + 1;
		if
		:: lease[FROM(q) * W + i] && dUp && !pLost -> fly = fly | BIT((q) * W + i)
		:: else -> skip  /* nowhere to write to: fails at once */
		fi;
		y++;
		i++
	:: else -> break
	od;
	ps[q] = P_SEND;
	SAY("P: fills the pages of request %d and begins to write them to D\n", q)
}

/* Whether D's page x is leased, by the lease that q writes under. */
#define LEASED(q, x) ((OWNS(FROM(q), x) || DRAINING(FROM(q), x)) && LATEST(FROM(q), x))
#ifdef DOUBLE_OWNER
#define LATEST(l, x) (holder[x] == (l) + 1)
#else
#define LATEST(l, x) true  /* a page is in one table at most */
#endif

/* Where the write of page i of q goes, what it carries, and whether D lets it: one-sided, D is not asked. */
inline aim(q, i) {
	x = lease[FROM(q) * W + i] - 1;
	c = (src[(q) * W + i] -> pw[src[(q) * W + i] - 1] : CODE(q, i));
	ok = 1;
#ifndef ONESIDED
	e = ATD(q);
	if
	:: ds[e] != D_RES -> ok = 0  /* late */
#ifdef GENERATIONS
	:: ds[e] == D_RES && gen[x] != leasegen[FROM(q) * W + i] -> ok = 0
#endif
	:: else
	fi
#endif
}

#ifdef TORN
/* The first bytes of the write land. Its tag is opened before, and closed after the last. */
inline begin(q, i) {
	aim(q, i);
	if
	:: ok -> CHECK(7, LEASED(q, x)); dw[x] = c; half = half | BIT(x); SAY3("-: page %d of request %d begins to land in D's page %d\n", i, q, x)
	:: else
	fi;
	begun = begun | BIT((q) * W + i)
}
#endif

/* The write of page i of q lands, and P learns that it is complete. */
inline land(q, i) {
	aim(q, i);
	if
	:: ok ->
		CHECK(7, LEASED(q, x));
		dw[x] = c;
#ifdef GENERATIONS
		taggen[x] = leasegen[FROM(q) * W + i];
#endif
#if TAGS == BY_TRANSPORT
		dtag[x] = CODE(q, i);
#elif defined(TAG_LAST)
		dtag[x] = c;
#endif
#ifdef TORN
		half = half & ~BIT(x);
#endif
		SAY3("-: page %d of request %d lands in D's page %d\n", i, q, x)
	:: else -> SAY2("-: page %d of request %d is turned away by D\n", i, q)
	fi;
	complete(q, i)
}

/* P learns that a write is complete, landed or dropped before it was sent. */
inline complete(q, i) {
#ifdef TORN
	begun = begun & ~BIT((q) * W + i);
#endif
	fly = fly & ~BIT((q) * W + i);
	tidy(q)
}

inline pAck(q) {
	e = ATP(q);
	if
	:: ps[e] == P_SENT -> pGive(e); ps[e] = P_NONE; SAY("P: hears Ack of request %d, its pages are free\n", e)
	:: else
	fi;
	tidy(e)
}

inline pReserved(q) {
	e = ATP(q);
	if
	:: ps[e] == P_WAIT ->
		ps[e] = P_LEASED;
#ifndef MINTS
		from[e] = q;
#endif
		SAY("P: hears Reserved of request %d\n", q)
	:: else -> SAY("P: hears Reserved of request %d too late\n", q)
	fi;
	tidy(q)
}

inline pQuiesce(q) {
	SAY("P: hears Quiesce of request %d\n", q);
	e = ATP(q);
	pStop(e, 1)
}

inline pGo(q) {  /* a stopped room has no write under way any more */
	pGive(q);
	ps[q] = P_NONE;
	if
	:: owe & BIT(q) -> owe = owe & ~BIT(q); TOD(mGone, q); SAY("P: says Gone of request %d\n", q)
	:: else
	fi;
	tidy(q)
}

#define CANCOMPUTE(q) (ps[q] == P_LEASED && COUNT(pfree) >= UP(SENT(q)))
#ifdef M_META_EARLY
#define CANMETA(q) (ps[q] == P_SEND)
#else
#define CANMETA(q) (ps[q] == P_SEND && !FLIES(q))
#endif
#define CANGO(q) (ps[q] == P_STOP && !FLIES(q))
#define FLYING(q, i) (fly & BIT((q) * W + i))
#ifdef TORN
#define BEGUN(q, i) (begun & BIT((q) * W + i))
#define UNBEGUN(q, i) !BEGUN(q, i)
#else
#define BEGUN(q, i) true
#define UNBEGUN(q, i) true
#endif

active [N] proctype Prefill() {
#define me (_pid - N)
end:	do
	:: d_step { rp?eval(SUBMIT + me) -> pSubmit(me) }
	:: d_step { rp?eval(ABORT + me) -> SAY("P: hears Abort of request %d\n", me); e = ATP(me); pStop(e, 0) }
	:: d_step { P_HEARS && (mReserved & BIT(me)) -> mReserved = mReserved & ~BIT(me); pReserved(me) }
	:: d_step { P_HEARS && (mAck & BIT(me)) -> mAck = mAck & ~BIT(me); pAck(me) }
	:: d_step { P_HEARS && (mQuiesce & BIT(me)) -> mQuiesce = mQuiesce & ~BIT(me); pQuiesce(me) }
	:: d_step { CANCOMPUTE(me) -> pCompute(me) }
	:: d_step { CANMETA(me) -> ps[me] = P_SENT; TOD(mMeta, me); SAY("P: says Meta of request %d\n", me) }
	:: d_step { CANGO(me) -> pGo(me) }
	/* The transport: writes land in any order, at any time. */
	:: d_step { FLYING(me, 0) && BEGUN(me, 0) -> land(me, 0) }
	:: d_step { FLYING(me, 1) && BEGUN(me, 1) -> land(me, 1) }
	:: d_step { FLYING(me, 0) && ps[me] == P_STOP && UNBEGUN(me, 0) -> complete(me, 0) }
	:: d_step { FLYING(me, 1) && ps[me] == P_STOP && UNBEGUN(me, 1) -> complete(me, 1) }
#ifdef TORN
	:: d_step { FLYING(me, 0) && UNBEGUN(me, 0) -> begin(me, 0) }
	:: d_step { FLYING(me, 1) && UNBEGUN(me, 1) -> begin(me, 1) }
#endif
#if DUPS
	:: d_step { dups && P_HEARS && (mReserved & BIT(me)) -> dups--; pReserved(me) }
	:: d_step { dups && P_HEARS && (mAck & BIT(me)) -> dups--; pAck(me) }
	:: d_step { dups && P_HEARS && (mQuiesce & BIT(me)) -> dups--; pQuiesce(me) }
#endif
#if LOSSES
	:: d_step { losses && (mReserved & BIT(me)) -> losses--; mReserved = mReserved & ~BIT(me); tidy(me); SAY("-: Reserved of request %d is lost\n", me) }
	:: d_step { losses && (mAck & BIT(me)) -> losses--; mAck = mAck & ~BIT(me); SAY("-: Ack of request %d is lost\n", me) }
	:: d_step { losses && (mQuiesce & BIT(me)) -> losses--; mQuiesce = mQuiesce & ~BIT(me); SAY("-: Quiesce of request %d is lost\n", me) }
#endif
	od
#undef me
}

/* ---- R ------------------------------------------------------------------------- */

inline tellP(q) { if :: pUp -> rp!ABORT + q :: else fi }
inline tellD(q) { if :: dUp -> rd!ABORT + q :: else fi }

inline rAnswer(q, mix) {  /* something of q's answer goes to whoever holds its room */
	e = ATR(q);
	if
	:: rs[e] == R_LIVE -> CHECK(6, e == q && !(mix))
	:: else
	fi
}

inline rDone(q, mix) {
	rAnswer(q, mix);
	if
	:: rs[e] == R_LIVE ->
		rs[e] = R_END;
		SAY("R: request %d has its answer\n", e);
#ifndef M_NO_RELEASE
		tellP(e)  /* an Ack may be lost */
#endif
	:: else
	fi
}

inline rFail(q) {
	e = ATR(q);
	if
	:: rs[e] == R_LIVE -> rs[e] = R_END; SAY("R: request %d has an error\n", e); tellP(e)
	:: else
	fi
}

inline rRefused(q) {
	e = ATR(q);
	if
	:: rs[e] == R_LIVE ->
		tellD(e);
#ifndef M_SILENT
		rs[e] = R_END;
		SAY("R: request %d has a refusal\n", e)
#endif
	:: else
	fi
}

active [N] proctype Router() {
#define me (_pid - 2 * N)
end:	do
	:: d_step { pr?eval(REFUSED + me) -> rRefused(me) }
	:: d_step { dr?eval(TOKEN + me) -> rAnswer(me, 0) }
	:: d_step { dr?eval(TOKEN + MIXED + me) -> rAnswer(me, 1) }
	:: d_step { dr?eval(DONE + me) -> rDone(me, 0) }
	:: d_step { dr?eval(DONE + MIXED + me) -> rDone(me, 1) }
	:: d_step { dr?eval(FAIL + me) -> rFail(me) }
	od
#undef me
}

inline rAbort(q) {
	rs[q] = R_END;
	SAY("R: request %d is aborted: its client left or its time is up\n", q);
	tellP(q);
	tellD(q)
}

#if LOSSES
/* A request that waits for a lost message has only its time limit, which is certain to come. */
active [N] proctype Clock() {
#define me (_pid - 3 * N)
end:	do
	:: d_step { LOST && rs[me] == R_LIVE -> rAbort(me) }
	od
#undef me
}
#endif

/* ---- Deaths ---------------------------------------------------------------------- */

#if CRASHES

inline drop(ch) { do :: len(ch) > 0 -> ch?_ :: else -> break od }

inline killLink() {
	mHello = 0; mMeta = 0; mGone = 0; mReserved = 0; mAck = 0; mQuiesce = 0
}

inline tidyAll() {
	e = 0;
	do
	:: e < N -> tidy(e); e++
	:: else -> break
	od
}

/* P dies. What it had begun to write may land until D tears the connection down. */
inline killP() {
	SAY0("-: P dies\n");
	pUp = 0; pLost = 0; rLostP = 1; dLost = dUp;
	drop(rp); drop(pr); killLink();
	pfree = NODE_P; owe = 0;
	e = 0;
	do
	:: e < N ->
		ps[e] = P_NONE;
		k = 0;
		do
		:: k < W -> src[e * W + k] = 0; k++
		:: else -> break
		od;
		e++
	:: else -> break
	od;
	e = 0;
	do
	:: e < PPAGES -> pw[e] = 0; e++
	:: else -> break
	od;
	tidyAll()
}

/* D dies, and its memory with it: nothing lands any more, P's writes complete as failed. */
inline killD() {
	SAY0("-: D dies\n");
	dUp = 0; dLost = 0; dReset = 0; rLostD = 1; pLost = pUp;
	drop(rd); drop(dr); killLink();
	dfree = NODE_D; hello = 0; high = 0; fly = 0;
#ifdef TORN
	half = 0; begun = 0;
#endif
	e = 0;
	do
	:: e < N -> ds[e] = D_NONE; e++
	:: else -> break
	od;
	e = 0;
	do
	:: e < DPAGES ->
		dw[e] = 0;
#ifdef GENERATIONS
		gen[e] = 0; taggen[e] = 0;
#endif
#ifdef DTAG
		dtag[e] = 0;
#endif
#ifdef DOUBLE_OWNER
		holder[e] = 0;
#endif
		e++
	:: else -> break
	od;
	tidyAll()
}

inline dPeerLost() {
	SAY0("D: hears that P died\n");
	dLost = 0; hello = 0;
	e = 0;
	do
	:: e < N ->
		if
		:: ds[e] == D_QUEUE -> ds[e] = D_NONE; dr!FAIL + e
		:: ds[e] == D_RES ->
			dr!FAIL + e;
#ifdef M_PEERLOST_FREES
			release(e); ds[e] = D_NONE
#else
			drain(e)
#endif
		:: else
		fi;
		tidy(e);
		e++
	:: else -> break
	od
}

inline dPeerReset() {
	SAY0("D: hears that the old P is gone for good\n");
	dReset = 0; fly = 0;
#ifdef TORN
	begun = 0;
#endif
	e = 0;
	do
	:: e < N ->
		if
		:: ds[e] == D_DRAIN -> release(e); ds[e] = D_NONE
		:: else
		fi;
		tidy(e);
		e++
	:: else -> break
	od
}

inline pPeerLost() {
	SAY0("P: hears that D died\n");
	pLost = 0;
	y = 0;
	do
	:: y < N ->
		pStop(y, 0);
		y++
	:: else -> break
	od
}

/* R loses a node: every request ends with an error, the node that is left is told. */
inline rLost() {
	e = 0;
	do
	:: e < N ->
		if
		:: rs[e] == R_LIVE ->
			rs[e] = R_END;
			SAY("R: request %d has an error\n", e);
			tellP(e);
			tellD(e)
		:: else
		fi;
		e++
	:: else -> break
	od
}

active proctype Nodes() {
end:	do
	:: d_step { rLostP -> rLostP = 0; rLost(); skip }
	:: d_step { rLostD -> rLostD = 0; rLost(); skip }
	:: d_step { !pUp && !rLostP -> pUp = 1; dReset = dUp; SAY0("R: P is started again\n") }
	:: d_step { !dUp && !rLostD -> dUp = 1; SAY0("R: D is started again\n") }
	:: d_step { dLost -> dPeerLost(); skip }
	:: d_step { dReset && !dLost -> dPeerReset(); skip }
	:: d_step { pLost -> pPeerLost(); skip }
	od
}

#endif

/* ---- What comes from outside: never forced to happen ------------------------------ */

#ifdef MINTS
#define FREEID true
#else
#define FREEID (next != 1 || rs[0] == R_END)
#endif
/* R takes requests when P and D have heard of each other again. */
#ifdef M_EARLY_ROUTE
#define CONNECTED (pUp && dUp && !rLostP && !rLostD)
#else
#define CONNECTED (pUp && dUp && !rLostP && !rLostD && !pLost && !dLost && !dReset)
#endif
#define ARRIVES (next < N && CONNECTED && FREEID)

active proctype Outside() {
end:	do
	:: d_step { ARRIVES -> rs[next] = R_LIVE; rp!SUBMIT + next; rd!SUBMIT + next; SAY2("R: request %d of tenant %c arrives\n", next, (next == 1 -> 'b' : 'a')); next++ }
	:: d_step { aborts && (LEAVES & BIT(0)) && rs[0] == R_LIVE -> aborts--; rAbort(0) }
	:: d_step { aborts && (LEAVES & BIT(1)) && rs[1] == R_LIVE -> aborts--; rAbort(1) }
#if N > 2
	:: d_step { aborts && (LEAVES & BIT(2)) && rs[2] == R_LIVE -> aborts--; rAbort(2) }
#endif
#if N > 3
	:: d_step { aborts && (LEAVES & BIT(3)) && rs[3] == R_LIVE -> aborts--; rAbort(3) }
#endif
#if CRASHES
	:: d_step { crashes && pUp -> crashes--; killP(); skip }
	:: d_step { crashes && dUp -> crashes--; killD(); skip }
#endif
	:: true -> skip
	od
}

/* ---- Invariants of states ---------------------------------------------------------- */

/* Each page of D is one of free, owned and draining, and free only once. */
#define ONE(b) ((b) -> 1 : 0)
#define KEPT(x) (ONE(dfree & BIT(x)) + ONE(dfree2 & BIT(x)) + ONE(OWNED(x)) + ONE(DRAINED(x)) == 1)
#if DPAGES == 2
#define ALLKEPT (KEPT(0) && KEPT(1))
#elif DPAGES == 3
#define ALLKEPT (KEPT(0) && KEPT(1) && KEPT(2))
#else
#define ALLKEPT (KEPT(0) && KEPT(1) && KEPT(2) && KEPT(3))
#endif

/* Nothing is under way and nobody has anything to do. */
#define IDLE(q) (ds[q] != D_RUN && ds[q] != D_READ && !CANRESERVE(q) && !CANCOMPUTE(q) && !CANMETA(q) && !CANGO(q))
#define HOLDS(q) ((ds[q] >= D_RES && ds[q] <= D_READ) || ps[q] >= P_SEND)
#if N == 2
#define ALLIDLE (IDLE(0) && IDLE(1))
#define HOLDING (HOLDS(0) || HOLDS(1))
#define ANYDRAINS (ds[0] == D_DRAIN || ds[1] == D_DRAIN)
#elif N == 3
#define ALLIDLE (IDLE(0) && IDLE(1) && IDLE(2))
#define HOLDING (HOLDS(0) || HOLDS(1) || HOLDS(2))
#define ANYDRAINS (ds[0] == D_DRAIN || ds[1] == D_DRAIN || ds[2] == D_DRAIN)
#else
#define ALLIDLE (IDLE(0) && IDLE(1) && IDLE(2) && IDLE(3))
#define HOLDING (HOLDS(0) || HOLDS(1) || HOLDS(2) || HOLDS(3))
#define ANYDRAINS (ds[0] == D_DRAIN || ds[1] == D_DRAIN || ds[2] == D_DRAIN || ds[3] == D_DRAIN)
#endif
#define QUIET (empty(rp) && empty(rd) && empty(pr) && empty(dr) && fly == 0 && \
	(mHello | mMeta | mGone | mReserved | mAck | mQuiesce) == 0 && \
	pUp && dUp && !rLostP && !rLostD && !pLost && !dLost && !dReset && ALLIDLE)

active proctype Auditor() {
end:	do
	:: d_step { !ALLKEPT -> CHECK(4, false) }
	:: d_step { !LIVE && (HOLDING || (UNHARMED && ANYDRAINS)) && QUIET -> CHECK(8, false) }
	od
}

ltl i5 { []<> !LIVE }
