package config

import "time"

// Guard is the file of `kvcanary guard`, with every default filled in.
type Guard struct {
	Listen    Listen
	Upstreams []Upstream
	Tenancy   Tenancy
	Admission Admission
	Isolation Isolation
	Watch     Watch
	Synthetic Synthetic
	Overlap   Overlap
	Limits    Limits
	Metrics   string // address that metrics and health are served on, "" for none
	Traces    Traces
	Receipts  Receipts
	Findings  string // file that a line is appended to for each finding, "" for none
	Log       string // "text" or "json"
}

// Listen is where clients come to: Address or Socket.
type Listen struct {
	Address, Socket string
	Cert, Key       string // files of the certificate to show; none: no TLS
	ClientCA        string // file of the authorities that clients' certificates must come from
	Health          bool   // serve /healthz and /readyz here too
}

// Upstream is an engine that is guarded.
type Upstream struct {
	Name, BaseURL   string // BaseURL without /v1
	Engine          string // "auto" or a name of Engines
	Models          []string
	Workers         []string // addresses that say how much they hold; none: BaseURL
	KeyEnv          string   // variable with the key that the guard shows instead of the client's
	ForwardKey      bool     // shows the client's
	CA              string
	Cert, ClientKey string
	Socket          string
	HealthPath      string // "" for the engine's usual one
	Limits          TokenLimits
}

// TokenLimits are what the operator states of an upstream, in tokens; 0 for
// nothing. They hold beside what is measured: the smallest counts.
type TokenLimits struct{ Prompt, Pool, Context, DecodePool int }

// Tenancy says who asks. Without Tenants everybody is let in and each key is a
// tenant of its own, or each value of Header where that is set.
type Tenancy struct {
	Tenants []GuardTenant
	Header  string
}

// GuardTenant is a customer and how its key is known.
type GuardTenant struct {
	Name, KeyEnv string
	KeySHA256    []byte // digest of the key, nil where KeyEnv holds it
	Concurrency  int    // requests at once; 0: as Limits says
}

// Admission says which prompts may reach an engine.
type Admission struct {
	Policy        string  // "closed": what is not known to fit is refused; "open": it passes, marked; "off"
	TokensPerByte float64 // bound on the tokens that one byte of text can be; 1 or more, since a client may choose text that is a token a byte
	Template      int     // tokens that the engine's chat template may add
	Opaque        int     // bound on the tokens of one image, audio or file part; 0: none is known
	Wide          float64 // bytes that a tokenizer's normalisation makes of one that is not ASCII, at most
	Structured    float64 // bytes that the template makes of one of a tool definition; 0: by its depth
	Margin        int     // tokens kept free below every limit
	Count         bool    // have the engine count what bytes do not decide
	CountOutput   bool    // the answer's most tokens count too
	Refresh       time.Duration
	MaxAge        time.Duration // a limit measured longer ago is unknown
}

// Isolation keeps tenants apart.
type Isolation struct {
	SaltKeyFile string // "": a key that lives as long as the process
	Unknown     string // "pass" or "refuse": fields of a body that no table knows
	Allow       []string
}

// Watch says how answers are looked at.
type Watch struct {
	Mode     string // "strict", "audit" or "off"
	KeyFiles []string
	MaxHeld  int // bytes of one stream
}

// Synthetic is a tenant of the guard's own that plants canaries; there is none
// without KeyFile.
type Synthetic struct {
	KeyFile, Model string
	Every          time.Duration // between two prompts, on average
	Words          int           // of the longest prompt
	TokensPerDay   int
}

// Overlap compares answers with what other tenants have sent; nothing is
// remembered for that without Memory.
type Overlap struct {
	Memory  int           // bytes of fingerprints
	Keep    time.Duration // how long a text is remembered after it was sent last
	Letters int           // of one tenant's, in a stretch of an answer, that are reported
}

// Limits bound what clients and engines may take.
type Limits struct {
	Body, Headers             int // bytes
	Buffered                  int // bytes of all bodies that are held at once
	BodyRate                  int // bytes a second that a body must come at
	Document                  int // bytes of an answer that is no stream
	Concurrency, TenantAtOnce int // requests; TenantAtOnce 0: no bound of its own
	HeaderTime, BodyTime      time.Duration
	ConnectTime, StallTime    time.Duration
	WriteTime                 time.Duration // that a client may leave an answer unread
	IdleTime, DrainTime       time.Duration
	HealthTime                time.Duration // between two looks at an upstream
}

// Traces says where spans go; nowhere without Endpoint.
type Traces struct {
	Endpoint string
	Ratio    float64 // of requests, 0 to 1
	Headers  []Named
}

// Receipts says where findings are sealed; nowhere without Dir.
type Receipts struct{ Dir, KeyFile string }

// GuardKnown is what there is to choose of. Allow may be nil: any name then.
type GuardKnown struct{ Engines, Allow []string }

// GuardDefaults is what a file says that says nothing. docs/guard.md says why.
func GuardDefaults() Guard {
	return Guard{
		Listen:    Listen{Address: "127.0.0.1:8080"},
		Admission: Admission{Policy: "closed", TokensPerByte: 1, Wide: 3, Template: 1024, Count: true, Refresh: time.Minute, MaxAge: 10 * time.Minute},
		Isolation: Isolation{Unknown: "pass"},
		Watch:     Watch{Mode: "strict", MaxHeld: 4 << 20},
		Limits: Limits{
			Body: 16 << 20, Headers: 32 << 10, Document: 16 << 20, Buffered: 256 << 20, BodyRate: 1024, Concurrency: 1024,
			HeaderTime: 10 * time.Second, BodyTime: 30 * time.Second, ConnectTime: 5 * time.Second,
			StallTime: 10 * time.Minute, WriteTime: time.Minute, IdleTime: 2 * time.Minute, DrainTime: 30 * time.Second, HealthTime: 5 * time.Second,
		},
		Synthetic: Synthetic{Every: time.Minute, Words: 500, TokensPerDay: 1_000_000},
		Overlap:   Overlap{Keep: time.Hour, Letters: 160},
		Traces:    Traces{Ratio: 1},
		Log:       "text",
	}
}

// ReadGuard reads the file of a guard. file names it in errors, all of which
// are an [*Error]. Paths in it are taken from the directory in which kvcanary
// runs; whether they are there is not looked at.
func ReadGuard(file string, b []byte, known GuardKnown) (*Guard, error) {
	root, bad := parse(b, kind{"upstreams and tenants", "one guard"})
	g := GuardDefaults()
	if bad == nil {
		bad = g.fields(root, known)
	}
	if bad != nil {
		return nil, bad.in(file)
	}
	return &g, nil
}
