package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/setting"
	"dedupledger/topics"
	"dedupledger/topics/msgkey"
)

// rule reads "match=acme:* window=7d extractors=[header edifact]" as a rule of
// line n.
func rule(t testing.TB, n int, text string) Rule {
	t.Helper()
	r, problems := readRule(n, text)
	require.Empty(t, problems)
	return r
}

func readRule(n int, text string) (Rule, setting.Problems) {
	at := setting.Place{Name: "dedup.yaml", Line: n + 1}
	var entries []setting.Entry
	for text != "" {
		var name, value string
		name, text, _ = strings.Cut(text, "=")
		w := setting.Written{At: at, Shape: setting.Scalar}
		if strings.HasPrefix(text, "[") {
			value, text, _ = strings.Cut(text[1:], "]")
			w.Shape, w.Items = setting.List, strings.Fields(value)
			text = strings.TrimPrefix(text, " ")
		} else {
			w.Text, text, _ = strings.Cut(text, " ")
		}
		entries = append(entries, setting.Entry{Name: name, Value: w})
	}
	return Read(fmt.Sprintf("flows[%d]", n), at, entries)
}

func newSet(t testing.TB, builtinRules bool, texts ...string) *Set {
	t.Helper()
	own := make([]Rule, len(texts))
	for i, text := range texts {
		own[i] = rule(t, i, text)
	}
	s, err := New(own, builtinRules)
	require.NoError(t, err)
	return s
}

func TestBuiltinRules(t *testing.T) {
	t.Parallel()
	s := newSet(t, true)
	for scope, chain := range map[string][]string{
		"acme:as2":         {"header", "edifact", "x12", "ubl", "cii", "as2"},
		"acme:as2-orders":  {"header", "edifact", "x12", "ubl", "cii", "as2"},
		"acme:as4":         {"header", "ubl", "cii", "sbdh", "as4"},
		"acme:peppol-test": {"header", "ubl", "cii", "sbdh"},
		"acme:sftp":        {"header", "auto"},
	} {
		f, ok := s.Flow(scope)
		require.True(t, ok, scope)
		require.Equal(t, chain, f.Extractors, scope)
		require.Equal(t, scope == "acme:peppol-test", slices.Equal([]string{"sbdh"}, f.Aliases), scope)
	}
	f, _ := s.Flow("acme:as2")
	require.Empty(t, f.Aliases)
	for key, days := range map[string]int{
		"as2:A/B/1": 7, "as4:x": 30, "edifact:a/b/1": 60, "x12:01:a/01:b/000000001": 60,
		"ubl:inv/vat:DE1/7/2026-11-01": 90, "cii:cn/vat:DE1/7/2026-11-01": 90, "inv:inv/vat:DE1/7/2026-11-01": 90, "hdr:x": 30, "edifact": 30, "": 30,
	} {
		d := f.Decide(key)
		require.Equal(t, time.Duration(days)*setting.Day, d.Window, key)
		require.Equal(t, "acme:as2", d.LedgerScope)
		require.False(t, d.WithDate)
	}
}

func TestFirstRuleThatSetsASettingWins(t *testing.T) {
	t.Parallel()
	s := newSet(t, true,
		"match=acme:edifact key=edifact:4098765000014:14/* window=1d with_date=true",
		"match=acme:edifact key=edifact:* namespace=edi",
		"match=acme:edifact key=edifact:4098765000014:14/* window=2d namespace=late with_date=false",
		"match=acme:* extractors=[edifact]",
		"match=acme:* extractors=[x12] window=9d",
		"match=beta:* window=5s namespace=shared",
		"match=beta:* key=as2:* window=6s")
	f, ok := s.Flow("acme:edifact")
	require.True(t, ok)
	require.Equal(t, []string{"edifact"}, f.Extractors)

	d := f.Decide("edifact:4098765000014:14/4012345000023:14/77001")
	require.Equal(t, "dedup.yaml:1", d.WindowRule.Window.At.String())
	d.WindowRule = nil
	require.Equal(t, Decision{Window: setting.Day, Namespace: "edi", WithDate: true, LedgerScope: "acme:edi"}, d)

	d = f.Decide("edifact:9/8/7")
	d.WindowRule = nil
	require.Equal(t, Decision{Window: 9 * setting.Day, Namespace: "edi", LedgerScope: "acme:edi"}, d)

	f, _ = s.Flow("beta:as2")
	d = f.Decide("as2:x")
	d.WindowRule = nil
	require.Equal(t, Decision{Window: 5 * time.Second, Namespace: "shared", LedgerScope: "beta:shared"}, d)
}

// TestObserve: the mode goes by the key where there is one, and by the rules
// without key where there is none.
func TestObserve(t *testing.T) {
	t.Parallel()
	s := newSet(t, true,
		"match=acme:* key=edifact:40/* mode=observe payload=none",
		"match=newco:* key=as2:* mode=enforce",
		"match=newco:* mode=observe")
	for _, c := range []struct {
		scope, key   string
		observe, any bool
	}{
		{"acme:edifact", "edifact:40/1", true, false},
		{"acme:edifact", "edifact:41/1", false, false},
		{"newco:as2", "as2:x", false, true},
		{"newco:as2", "hdr:x", true, true},
		{"beta:as2", "hdr:x", false, false},
	} {
		f, _ := s.Flow(c.scope)
		d := f.Decide(c.key)
		require.Equal(t, c.observe, d.Observe, c.key)
		require.Equal(t, c.key == "edifact:40/1", d.NoPayload, c.key)
		require.Equal(t, c.any, f.Observes(), c.scope)
		require.Equal(t, c.any, NewKeyer(s).Observes(topics.Scope{Tenant: strings.Split(c.scope, ":")[0], Flow: "as2"}))
	}
	require.False(t, NewKeyer(newSet(t, false, "match=a:b mode=observe")).Observes(topics.Scope{Tenant: "a", Flow: "c"}), "a flow that is not known")
	require.Equal(t, []string{"dedup.yaml:1 acme:* edifact:40/*", "dedup.yaml:3 newco:* "}, observing(s))
}

func observing(s *Set) (lines []string) {
	for _, r := range s.Observing() {
		lines = append(lines, r.Mode.At.String()+" "+r.Match.Value+" "+r.Key.Value)
	}
	return lines
}

func TestEmptyNamespaceExempts(t *testing.T) {
	t.Parallel()
	s := newSet(t, true, "match=acme:as2 namespace=", "match=acme:* namespace=all")
	f, _ := s.Flow("acme:as2")
	require.Equal(t, "acme:as2", f.Decide("hdr:1").LedgerScope)
	f, _ = s.Flow("acme:as4")
	require.Equal(t, "acme:all", f.Decide("hdr:1").LedgerScope)
}

func TestUnknownFlow(t *testing.T) {
	t.Parallel()
	s := newSet(t, false, "match=acme:as2 extractors=[header]", "match=*:* key=as2:* window=7d")
	f, ok := s.Flow("acme:as2")
	require.True(t, ok)
	require.Equal(t, []string{"header"}, f.Extractors)
	require.Equal(t, 7*setting.Day, f.Decide("as2:x").Window)
	require.Equal(t, DefaultWindow, f.Decide("hdr:x").Window)
	for range 2 {
		_, ok = s.Flow("acme:as4")
		require.False(t, ok, "a rule with key makes no flow known")
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	shortest, longest := newSet(t, true).Windows()
	require.Equal(t, 7*setting.Day, shortest.Value)
	require.Equal(t, 90*setting.Day, longest.Value)
	shortest, longest = newSet(t, true, "match=a:b window=400d", "match=a:c key=x12:* window=1h").Windows()
	require.Equal(t, time.Hour, shortest.Value)
	require.Equal(t, "dedup.yaml:1", longest.At.String())
	shortest, longest = newSet(t, false, "match=*:* window=1d", "match=a:c window=1h").Windows()
	require.Equal(t, setting.Day, shortest.Value)
	require.Equal(t, setting.Day, longest.Value)
}

func TestEveryErrorAtOnce(t *testing.T) {
	t.Parallel()
	var own []Rule
	var problems setting.Problems
	for i, text := range []string{
		`match=acme:* window=60`,
		`match=acme windw=1d`,
		`window=500ms`,
		`match=*:* key=as[24]:* extractors=[header] lenient=false`,
		`match=*:* extractors=[header ubl edi header json]`,
		`match=*:* extractors=[] namespace=a:b`,
		`match=*:* extractors=auto with_date=yes`,
		`match=*:* mode=observed entry=kafka aliases=[sbdh] hash=jcs ttl_max=7d lenient=true durability=fast payload=some`,
		`match=*:* sellers=[ep gln] scheme=ubl message_level=st json_pointers=[id] file_pattern=( oftp1=yes`,
		`match=*:* key=hdr:* sellers=[ep] scheme=inv cxml_order=true message_level=group json_pointers=[/id] file_pattern=(a) oftp1=true`,
		`match=*:* sellers=[]`,
		`match=*:* aliases=[sbdh as4 as2]`,
		`match=*:* aliases=[sbd json]`,
		`match=*:* aliases=[sbdh sbdh]`,
		`match=*:* key=hdr:* aliases=[]`,
		`match=*:* window=401d`,
		`match=*:* mode=enforce entry=auto aliases=[] hash=raw ttl_max=400d lenient=false durability=strict payload=full`,
	} {
		r, ps := readRule(i, text)
		own, problems = append(own, r), append(problems, ps...)
	}
	_, err := New(own, true)
	var more setting.Problems
	require.ErrorAs(t, err, &more)
	names := strings.Join(msgkey.Names(), ", ")
	require.Equal(t, strings.ReplaceAll(strings.TrimSpace(`
dedup.yaml:1: flows[0].window: "60": not a duration; write a number with ms, s, m, h, d or y (1s to 400d)
dedup.yaml:2: flows[1].windw: "1d": unknown key; known are match, key, mode, entry, extractors, aliases, namespace, hash, window, ttl_max, lenient, with_date, durability, payload, sellers, scheme, cxml_order, message_level, json_pointers, file_pattern, oftp1
dedup.yaml:2: flows[1].match: "acme": needs exactly one colon, tenant:flow, as acme:as2 or *:*
dedup.yaml:3: flows[2].window: "500ms": out of range; write 1s to 400d
dedup.yaml:3: flows[2].match: not set; write a glob on tenant:flow, as acme:as2 or *:*
dedup.yaml:4: flows[3].key: "as[24]:*": '[' can never match; allowed are letters, digits, -._@+=,%:/~ and the globs * ? {a,b}
dedup.yaml:4: flows[3].extractors: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:4: flows[3].lenient: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:5: flows[4].extractors[2]: "edi": no such extractor; available are NAMES
dedup.yaml:5: flows[4].extractors[3]: "header": named twice
dedup.yaml:5: flows[4].extractors[4]: "json": needs json_pointers in the same rule, as [/order/id]
dedup.yaml:6: flows[5].extractors: []: needs at least one of NAMES
dedup.yaml:6: flows[5].namespace: "a:b": write 1 to 40 of letters, digits, . _ -
dedup.yaml:7: flows[6].extractors: "auto": write a list: [a, b]
dedup.yaml:7: flows[6].with_date: "yes": write true or false
dedup.yaml:8: flows[7].mode: "observed": write enforce or observe
dedup.yaml:8: flows[7].payload: "some": write full or none
dedup.yaml:8: flows[7].hash: "jcs": not available yet; write raw, edi, c14n, mime-parts, mime-payload
dedup.yaml:8: flows[7].entry: "kafka": comes with a later release; leave it at auto
dedup.yaml:8: flows[7].durability: "fast": comes with a later release; leave it at strict
dedup.yaml:8: flows[7].ttl_max: "7d": comes with a later release; leave it at 400d
dedup.yaml:9: flows[8].oftp1: "yes": write true or false
dedup.yaml:9: flows[8].message_level: "st": write interchange or group or message
dedup.yaml:9: flows[8].scheme: "ubl": write format or inv
dedup.yaml:9: flows[8].sellers: "gln": no such identifier; write vat, reg, id, ep
dedup.yaml:9: flows[8].json_pointers: "id": write an RFC 6901 pointer, as /orderId or /order/0/id
dedup.yaml:9: flows[8].file_pattern: "(": error parsing regexp: missing closing ): `+"`(`"+`
dedup.yaml:10: flows[9].sellers: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:10: flows[9].scheme: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:10: flows[9].cxml_order: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:10: flows[9].message_level: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:10: flows[9].json_pointers: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:10: flows[9].file_pattern: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:10: flows[9].oftp1: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:11: flows[10].sellers: []: needs at least one of vat, reg, id, ep
dedup.yaml:12: flows[11].aliases: "sbdh,as4,as2": a record has at most 2 aliases
dedup.yaml:13: flows[12].aliases[0]: "sbd": no such extractor; available are NAMES
dedup.yaml:13: flows[12].aliases[1]: "json": needs json_pointers in the same rule, as [/order/id]
dedup.yaml:14: flows[13].aliases[1]: "sbdh": named twice
dedup.yaml:15: flows[14].aliases: is decided before the key is known; beside key only window, namespace, with_date, mode, payload, ttl_max
dedup.yaml:16: flows[15].window: "401d": out of range; write 1s to 400d`), "NAMES", names),
		append(problems, more...).Sorted().Error())
}

func TestNumberOfRulesIsBounded(t *testing.T) {
	t.Parallel()
	_, err := New(make([]Rule, maxRules+1), true)
	require.ErrorContains(t, err, "4097 rules; at most 4096")
}

// TestDecideEqualsTheDefinition compares index and bitsets with a plain walk
// over random rules.
func TestDecideEqualsTheDefinition(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	for range 30 {
		texts := make([]string, rnd.IntN(300))
		for i := range texts {
			texts[i] = "match=" + pick("a:*", "b:*", "*:x", "*:{x,y}", "a:x", "*:*")
			if rnd.IntN(4) > 0 {
				texts[i] += " key=" + pick("k:*", "*", "k:{1,2}*", "k:1?", "k:12*3", "?:*", "k:{1,12,}*", "j:*", "k:13",
					fmt.Sprintf("k:*/RECEIVER%d/*", rnd.IntN(40)), fmt.Sprintf("k:{a,b}*RECEIVER%d:14*", rnd.IntN(40)), "k:*/RECEIVER/*")
			}
			texts[i] += pick("", "", " mode=observe", " mode=enforce") + pick("", "", " payload=none", " payload=full")
			texts[i] += pick(" window=", " window=", " namespace=n") + fmt.Sprint(1+rnd.IntN(1000))
			if strings.Contains(texts[i], "window") {
				texts[i] += "s" + pick("", " with_date=true", " with_date=false")
			}
		}
		s := newSet(t, rnd.IntN(2) == 0, texts...)
		for _, scope := range []string{"a:x", "a:y", "b:x", "c:z"} {
			f, ok := s.Flow(scope)
			for _, key := range []string{"k:1", "k:12", "k:13", "k:1233", "k:2", "k:", "j:9", "zz", "", "k:a/RECEIVER7/1", "k:b/RECEIVER17:14/1", "k:/RECEIVER/9", "k:a/RECEIVER39:14/RECEIVER3/"} {
				want, known := s.plainly(scope, key)
				require.Equal(t, known, ok)
				if ok {
					require.Equal(t, want, f.Decide(key), "%s %s\n%s", scope, key, strings.Join(texts, "\n"))
				}
			}
		}
	}
}

func (s *Set) plainly(scope, key string) (d Decision, known bool) {
	var window, namespace, date, mode, payload bool
	for i := range s.rules {
		r := &s.rules[i]
		last := i == len(s.rules)-1
		if !last && (!r.match.match(scope) || r.keyed && !r.key.match(key)) {
			continue
		}
		known = known || !last && !r.keyed
		if r.Window.Set && !window {
			d.Window, d.WindowRule, window = r.Window.Value, &r.Rule, true
		}
		if r.Namespace.Set && !namespace {
			d.Namespace, d.LedgerScope, namespace = r.Namespace.Value, LedgerScope(scope, r.Namespace.Value), true
		}
		if r.WithDate.Set && !date {
			d.WithDate, date = r.WithDate.Value, true
		}
		if r.Mode.Set && !mode {
			d.Observe, mode = r.Mode.Value == "observe", true
		}
		if r.Payload.Set && !payload {
			d.NoPayload, payload = r.Payload.Value == "none", true
		}
	}
	return d, known
}

func TestCacheIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	s := newSet(t, true)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 3 * generation {
				_, ok := s.Flow(fmt.Sprintf("t%d:f%d", w, i))
				if f, _ := s.Flow("acme:as2"); !ok || f.scope != "acme:as2" {
					t.Error("wrong flow")
					return
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, len(s.flows.young)+len(s.flows.old), 2*generation)
}

func TestNoAllocationOnRepeatedUse(t *testing.T) { //nolint:paralleltest // counts allocations of the process
	s := newSet(t, true, "match=acme:* key=edifact:4098765000014:14/* window=1d", "match=acme:* namespace=edi")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		f, _ := s.Flow("acme:edifact")
		if f.Decide("edifact:4098765000014:14/4012345000023:14/77001").LedgerScope != "acme:edi" {
			t.Error("wrong decision")
		}
	}))
}

func BenchmarkLookUp(b *testing.B) {
	shapes := map[string]func(i int) string{
		"partners":  func(i int) string { return fmt.Sprintf("match=acme:edifact key=edifact:40%08d:14/* window=1d", i) },
		"tenants":   func(i int) string { return fmt.Sprintf("match=t%d:* key=edifact:* window=1d", i) },
		"receivers": func(i int) string { return fmt.Sprintf("match=acme:* key=edifact:*/40%08d:14/* window=1d", i) },
	}
	for name, text := range shapes {
		b.Run(name, func(b *testing.B) {
			texts := make([]string, 500)
			for i := range texts {
				texts[i] = text(i)
			}
			s := newSet(b, true, texts...)
			b.ReportAllocs()
			for b.Loop() {
				f, _ := s.Flow("acme:edifact")
				f.Decide("edifact:4000000321:14/4012345000023:14/77001")
			}
		})
	}
}
