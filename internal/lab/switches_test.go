package lab

import (
	"regexp"
	"strings"
	"testing"

	"github.com/kvcanary/kvcanary/internal/lab/handoff"
	"github.com/kvcanary/kvcanary/internal/lab/node"
	"github.com/kvcanary/kvcanary/internal/lab/prefix"
)

func TestSwitchesAreDescribed(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	seen := map[string]bool{}
	for _, s := range append(append([]Switch{}, Faults...), Defences...) {
		if !name.MatchString(s.Name) || seen[s.Name] {
			t.Errorf("%q is no good name", s.Name)
		}
		seen[s.Name] = true
		if s.Does == "" || strings.HasSuffix(s.Does, ".") {
			t.Errorf("%s: %q", s.Name, s.Does)
		}
		for _, mode := range append([]string{""}, s.Modes...) {
			var sw Settings
			s.apply(mode, &sw)
			if sw == (Settings{}) {
				t.Errorf("%s:%s switches nothing", s.Name, mode)
			}
		}
	}
	for _, f := range Faults {
		if len(f.Reports) == 0 {
			t.Errorf("%s has no public report", f.Name)
		}
	}
}

func TestSwitchesSwitch(t *testing.T) {
	for spec, want := range map[string]prefix.Faults{
		"early_publish": prefix.NeverWritten, "early_publish:never_written": prefix.NeverWritten,
		"early_publish:last_slot": prefix.LastSlot, "early_publish:copy_race": prefix.CopyRace,
		"thin_key": prefix.WeakHash, "thin_key:omit_media": prefix.OmitMedia, "thin_key:omit_adapter": prefix.OmitAdapter,
		"shared_prefix": prefix.SharedPrefix, "shared_prefix:tier": prefix.SharedBlobs, "stale_source:tier": prefix.StaleBlob,
	} {
		var got Settings
		apply, err := ParseFault(spec)
		if err != nil {
			t.Fatal(err)
		}
		if apply(&got); got != (Settings{Prefix: prefix.Switches{Faults: want}}) {
			t.Errorf("%s: got %+v", spec, got)
		}
	}
	for spec, want := range map[string]prefix.Defences{
		"salt": prefix.Salt, "salt:gpu_only": prefix.SaltCacheOnly,
		"publish_after_commit": prefix.AfterCommit, "block_tags": prefix.TagsByWriter, "block_tags:at_reserve": prefix.TagsAtReserve,
		"tier_generations": prefix.BlobGenerations, "tier_checksum": prefix.ChecksumOfKey, "tier_checksum:hop": prefix.ChecksumOfHop,
	} {
		var got Settings
		apply, err := ParseDefence(spec)
		if err != nil {
			t.Fatal(err)
		}
		if apply(&got); got != (Settings{Prefix: prefix.Switches{Defences: want}}) {
			t.Errorf("%s: got %+v", spec, got)
		}
	}
	for spec, want := range map[string]handoff.Switches{
		"stale_reserve": {Faults: handoff.StaleReserve},
		"late_write":    {Faults: handoff.LateWrite}, "stale_source": {Faults: handoff.StaleSource},
		"double_owner":                {Faults: handoff.DoubleOwner},
		"stale_reserve:prefill_usage": {Faults: handoff.StaleReserve},
		"stale_reserve:decode_usage":  {Faults: handoff.StaleReserve | handoff.DecodeUsage},
	} {
		var got Settings
		apply, err := ParseFault(spec)
		if err != nil {
			t.Fatal(err)
		}
		if apply(&got); got != (Settings{Handoff: want}) {
			t.Errorf("%s: got %+v", spec, got)
		}
	}
	for mode, traces := range map[string]bool{"": false, ":client": false, ":trace_id": true} {
		var got Settings
		apply, err := ParseFault("id_reuse" + mode)
		if err != nil {
			t.Fatal(err)
		}
		want := Settings{Handoff: handoff.Switches{Faults: handoff.IDReuse}, IDs: IDSettings{Traces: traces, Outbox: true}}
		if apply(&got); got != want {
			t.Errorf("id_reuse%s: got %+v", mode, got)
		}
	}
	for spec, want := range map[string]handoff.Switches{
		"coverage": {Defences: handoff.Coverage}, "quiesce": {Defences: handoff.QuiesceFirst},
		"tags": {Defences: handoff.TagsByWriter}, "tags:at_reserve": {Defences: handoff.TagsAtReserve},
		"checksum": {Defences: handoff.ChecksumReceiver}, "checksum:sender": {Defences: handoff.ChecksumSender},
		"checksum_absent": {Defences: handoff.AbsentRefused}, "checksum_absent:skip": {Defences: handoff.AbsentSkipped},
		"retire": {Defences: handoff.Retire}, "zero_on_alloc": {Defences: handoff.ZeroOnAlloc},
	} {
		var got Settings
		apply, err := ParseDefence(spec)
		if err != nil {
			t.Fatal(err)
		}
		if apply(&got); got != (Settings{Handoff: want}) {
			t.Errorf("%s: got %+v", spec, got)
		}
	}
	// Some reach further than the handoff.
	for spec, want := range map[string]Settings{
		"generations": {Handoff: handoff.Switches{Defences: handoff.Generations}, Gateway: GatewaySettings{Defences: BufferGenerations}},
		"full_compare": {
			Prefix: prefix.Switches{Defences: prefix.FullCompare}, Node: node.Switches{Defences: node.CompareRestored},
			Gateway: GatewaySettings{Defences: CompareTokens},
		},
		"unique_ids": {Handoff: handoff.Switches{Defences: handoff.UniqueIDs}, IDs: IDSettings{Unique: true}},
	} {
		var got Settings
		apply, err := ParseDefence(spec)
		if err != nil {
			t.Fatal(err)
		}
		if apply(&got); got != want {
			t.Errorf("%s: got %+v", spec, got)
		}
	}
}

func TestBadConfigurationsSayWhatToDo(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`unknown fault "stale": use one of stale_reserve`:                   func(c *Config) { c.Faults = []string{"stale"} },
		`no mode "x": use one of prefill_usage, decode_usage`:               func(c *Config) { c.Faults = []string{"stale_reserve:x"} },
		`unknown defence "stale_reserve": use one of retire, zero_on_alloc`: func(c *Config) { c.Defences = []string{"stale_reserve"} },
		`defence retire has no modes: leave out ":x"`:                       func(c *Config) { c.Defences = []string{"retire:x"} },
		`unknown free-list policy "random": use lifo, fifo or sort`:         func(c *Config) { c.Policy = "random" },
		`page size is 0 tokens: it must be at least 1`:                      func(c *Config) { c.PageSize = 0 },
		`each pool must hold at least one page`:                             func(c *Config) { c.DecodePool = 15 },
		`unknown answer cache "all": use exact or semantic`:                 func(c *Config) { c.AnswerCache = "all" },
		`leaves no room for a prompt`:                                       func(c *Config) { c.Context = 7 },
	} {
		cfg := Small()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if e, err := StartPipe(cfg); err == nil {
			e.Close()
			t.Errorf("%q starts", want)
		}
	}
	for _, cfg := range []Config{Small(), Full()} {
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	}
}
