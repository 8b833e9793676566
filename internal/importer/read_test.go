package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/rules"
	"dedupledger/internal/setting"
	"dedupledger/ledger"
)

var hashA = hex.EncodeToString(hashOfText("a"))

func hashOfText(text string) []byte { sum := sha256.Sum256([]byte(text)); return sum[:] }

// terms are those of a set with a namespace, and a window of its own for a partner.
func terms(t *testing.T) Terms {
	t.Helper()
	set, err := rules.New([]rules.Rule{
		{Path: "flows[0]", Match: value("acme:*"), Key: value("edifact:4098*"), Window: value(3 * setting.Day)},
		{Path: "flows[1]", Match: value("acme:{as2,as4}"), Namespace: value("shared")},
	}, true)
	require.NoError(t, err)
	return Terms{Name: "old.csv", Rules: set, Longest: rules.MaxWindow}
}

func value[T any](v T) rules.Setting[T] { return rules.Setting[T]{Value: v, Set: true} }

// all reads a text to its end.
func all(t *testing.T, terms Terms, text string) (lines []ledger.ImportLine, bad []string) {
	t.Helper()
	r, err := open(strings.NewReader(text), &terms)
	require.NoError(t, err)
	for {
		c := r.chunk()
		require.NoError(t, c.err)
		require.Len(t, c.at, len(c.lines))
		require.Equal(t, c.read, len(c.lines)+len(c.bad))
		lines = append(lines, c.lines...)
		for _, p := range c.bad {
			bad = append(bad, p.Error())
		}
		if c.read < ledger.MaxChunk {
			require.Equal(t, int64(len(text)), c.bytes)
			return lines, bad
		}
	}
}

func TestFormsOfOneLine(t *testing.T) {
	t.Parallel()
	want := ledger.ImportLine{
		Key:  ledger.Key{Scope: "acme:rest", Key: "rest:4711", Window: 30 * setting.Day},
		Flow: "rest", PayloadSHA256: [32]byte(hashOfText("a")), FirstSeenAt: time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC),
	}
	for _, text := range []string{
		"scope,key,sha256,first_seen\nacme:rest,rest:4711," + hashA + ",2026-11-02T09:30:00Z\n",
		"scope,key,sha256,first_seen\nacme:rest,rest:4711," + hashA + ",2026-11-02T09:30:00Z",
		"\xef\xbb\xbffirst_seen , key,scope,sha256\r\n\r\n2026-11-02 10:30:00.0000004+01:00,rest:4711,acme:rest," + strings.ToUpper(hashA) + "\r\n",
		"window,scope,key,sha256,first_seen\n,\"acme:rest\",\" rest:4711 \"," + hashA + ",2026-11-02T09:30:00Z\n\n \n",
		`{"scope":"acme:rest","key":"rest:4711","sha256":"` + hashA + `","first_seen":"2026-11-02T09:30:00Z"}`,
		"\n" + `  {"window":"30d","first_seen":"2026-11-02T09:30:00Z","sha256":"` + hashA + `","key":"rest\u003a4711","scope":"acme:rest"}` + "\r\n",
	} {
		lines, bad := all(t, terms(t), text)
		require.Empty(t, bad, text)
		require.Equal(t, []ledger.ImportLine{want}, lines, text)
	}
	for _, empty := range []string{"", "\n\n", "scope,key,sha256,first_seen", "\xef\xbb\xbf"} {
		lines, bad := all(t, terms(t), empty)
		require.Empty(t, lines)
		require.Empty(t, bad)
	}
}

// csvLine is a line under the header of these tests.
func csvLine(scope, key, hash, first, window string) string {
	return strings.Join([]string{scope, key, hash, first, window}, ",") + "\n"
}

const csvHeader = "scope,key,sha256,first_seen,window\n"

const day2 = "2026-11-02"

// TestKeyScopeAndWindow: a key is what the header dedup-key would make of it, its
// place is that of the rules, and its window the line's, the call's or the rules'.
func TestKeyScopeAndWindow(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	partner := "edifact:4098765000014:14/4012345000023:14/77001"
	for _, c := range []struct {
		scope, key, window string
		call               time.Duration
		want               ledger.Key
	}{
		{"acme:rest", "77 001", "", 0, ledger.Key{Scope: "acme:rest", Key: "hdr:77%20001", Window: 30 * setting.Day}},
		{"acme:rest", "op:x", "", 0, ledger.Key{Scope: "acme:rest", Key: "hdr:op%3Ax", Window: 30 * setting.Day}},
		{"acme:rest", "hdr:77%20001", "", 0, ledger.Key{Scope: "acme:rest", Key: "hdr:77%20001", Window: 30 * setting.Day}},
		{"acme:rest", long, "", 0, ledger.Key{Scope: "acme:rest", Key: "hdr:" + long[:110] + "~" + hex.EncodeToString(hashOfText("hdr:"+long)), Window: 30 * setting.Day}},
		{"beta:edi", "x12:A/B/1", "", 0, ledger.Key{Scope: "beta:edi", Key: "x12:A/B/1", Window: 60 * setting.Day}},
		{"acme:edi", partner, "", 0, ledger.Key{Scope: "acme:edi", Key: partner, Window: 3 * setting.Day}},
		{"acme:as2", partner, "", 5 * setting.Day, ledger.Key{Scope: "acme:shared", Key: partner, Window: 5 * setting.Day}},
		{"acme:as4", partner, "90s", 5 * setting.Day, ledger.Key{Scope: "acme:shared", Key: partner, Window: 90 * time.Second}},
	} {
		terms := terms(t)
		terms.Window = c.call
		lines, bad := all(t, terms, csvHeader+csvLine(c.scope, c.key, hashA, day2, c.window))
		require.Empty(t, bad)
		require.Equal(t, c.want, lines[0].Key)
		_, flow, _ := strings.Cut(c.scope, ":")
		require.Equal(t, flow, lines[0].Flow)
	}
}

// TestBadLines: each is named with line, field, value and what is allowed, and the
// others are read.
func TestBadLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, says string }{
		{csvLine("acme", "k", hashA, day2, ""), `old.csv:2: scope: "acme": write tenant:flow, each 1 to 40 of letters, digits, . _ -`},
		{csvLine("acme:a:b", "k", hashA, day2, ""), `scope: "acme:a:b": write tenant:flow`},
		{csvLine("acme:as2", "", hashA, day2, ""), `old.csv:2: key: header.empty_key: write 1 to 4096 octets`},
		{csvLine("acme:as2", strings.Repeat("k", 4097), hashA, day2, ""), `old.csv:2: key: header.key_too_long: write 1 to 4096 octets`},
		{csvLine("acme:as2", "k", "", day2, ""), `old.csv:2: sha256: write the SHA-256 of the payload, 64 hex digits; without it a resend cannot be told from a changed one`},
		{csvLine("acme:as2", "k", hashA[:62], day2, ""), `sha256: "` + hashA[:60] + `…": write the SHA-256`},
		{csvLine("acme:as2", "k", "g"+hashA[1:], day2, ""), `: write the SHA-256`},
		{csvLine("acme:as2", "k", hashA, "", ""), `old.csv:2: first_seen: write a time by RFC 3339, as in 2026-11-02T09:30:00Z, or a date, which is its first second in UTC`},
		{csvLine("acme:as2", "k", hashA, "2026-11-02T09:30:00", ""), `first_seen: "2026-11-02T09:30:00": write a time`},
		{csvLine("acme:as2", "k", hashA, "2026-02-30", ""), `first_seen: "2026-02-30": write a time`},
		{csvLine("acme:as2", "k", hashA, "1969-12-31", ""), `first_seen: "1969-12-31": write a time`},
		{csvLine("acme:as2", "k", hashA, "1700000000", ""), `; 1700000000 seconds since 1970 are 2023-11-14T22:13:20Z`},
		{csvLine("acme:as2", "k", hashA, "1700000000123", ""), `; 1700000000123 milliseconds since 1970 are 2023-11-14T22:13:20.123Z`},
		{csvLine("acme:as2", "k", hashA, day2, "30 days"), `old.csv:2: window: "30 days": not a duration; write 30d (1s to 400d)`},
		{csvLine("acme:as2", "k", hashA, day2, "401d"), `window: "401d": out of range; write 1s to 400d`},
		{csvLine("acme:as2", "k", hashA, day2, "1500ms"), `window: "1500ms": write whole seconds`},
		{"acme:as2,k," + hashA + "\n", `old.csv:2: 3 columns; the first line names 5`},
		{csvLine("acme:as2", `"k`, hashA, day2, ""), `old.csv:2: not CSV: character `},
		{csvLine("acme:as2", `k"k`, hashA, day2, ""), `old.csv:2: not CSV: character `},
		{csvLine("acme:as2", strings.Repeat("k", maxLine), hashA, day2, ""), `old.csv:2: longer than 65536 bytes: is a line break missing?`},
		{csvLine("acme:as2", strings.Repeat("k", 5*maxLine), hashA, day2, ""), `old.csv:2: longer than 65536 bytes: is a line break missing?`},
	} {
		good := csvLine("acme:as2", "good", hashA, day2, "")
		lines, bad := all(t, terms(t), csvHeader+c.line+good+c.line+good)
		require.Len(t, lines, 2, c.line[:min(100, len(c.line))])
		require.Len(t, bad, 2)
		require.Contains(t, bad[0], c.says)
		require.Contains(t, bad[1], "old.csv:4: ")
	}
	object := func(more string) string {
		return `{"scope":"acme:as2","key":"k","sha256":"` + hashA + `","first_seen":"2026-11-02"` + more + "}"
	}
	for _, c := range []struct{ line, says string }{
		{object(`,"ttl":5`), `old.csv:2: not an object of the texts scope, key, sha256, first_seen, window: json: unknown field "ttl"`},
		{object(`,"window":30`), `cannot unmarshal number into Go struct field fields.window of type string`},
		{object(``) + object(``), `old.csv:2: more than one object: write each in a line of its own`},
		{object(``)[1:], `not an object of the texts`},
		{object(``)[:20], `not an object of the texts`},
		{`{"scope":"acme:as2","key":"` + "\xdc" + `"}`, `not UTF-8: write other octets of a key as %XX`},
		{`{"scope":"acme:as2","key":null}`, `key: header.empty_key`},
		{`null`, `scope: write tenant:flow`},
	} {
		lines, bad := all(t, terms(t), object("")+"\n"+c.line+"\n"+object("")+"\n")
		require.Len(t, lines, 2, c.line)
		require.Len(t, bad, 1, c.line)
		require.Contains(t, bad[0], c.says)
	}
	small := terms(t)
	small.Longest = 59 * setting.Day
	_, bad := all(t, small, csvHeader+csvLine("acme:as2", "k", hashA, day2, "60d"))
	require.Contains(t, bad[0], "write 1s to 59d")
}

func TestUnknownFlow(t *testing.T) {
	t.Parallel()
	set, err := rules.New([]rules.Rule{{Path: "flows[0]", Match: value("acme:as2"), Window: value(setting.Day)}}, false)
	require.NoError(t, err)
	_, bad := all(t, Terms{Name: "-", Rules: set, Longest: rules.MaxWindow}, csvHeader+csvLine("beta:as2", "k", hashA, day2, "30d"))
	require.Equal(t, []string{`-:2: scope: "beta:as2": no rule speaks of this flow and builtin_rules is false: its records are INVALID flow.unknown`}, bad)
}

// TestFilesThatCannotBeRead are refused as a whole.
func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, says string }{
		{"scope,key,first_seen\n", "old.csv:1: no column sha256: the first line names the columns scope,key,sha256,first_seen and, if there is one, window, in any order; or write JSON lines"},
		{"scope,key,sha256,first_seen,ttl\n", `unknown column "ttl": the first line names`},
		{"scope,key,sha256,key,first_seen\n", "column key stands there twice"},
		{"scope;key;sha256;first_seen\n", "in any order, with commas between them"},
		{"acme:as2,k," + hashA + ",2026-11-02\n", `unknown column "acme:as2"`},
		{`"scope`, "old.csv:1: not CSV"},
		{"\x1f\x8b\x08\x00", "old.csv: it is compressed: unpack it first, as in gzip -dc FILE | dedup import -"},
		{"\xff\xfes\x00", "old.csv: it is UTF-16"},
		{strings.Repeat("x", maxLine+1), "old.csv:1: longer than 65536 bytes"},
	} {
		terms := terms(t)
		_, err := open(strings.NewReader(c.text), &terms)
		require.ErrorContains(t, err, c.says)
	}
	terms := terms(t)
	_, err := open(io.MultiReader(strings.NewReader("sc"), broken{}), &terms)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestManyLines: chunks are full but for the last, and tell each line's number.
func TestManyLines(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(csvHeader)
	for i := range 1203 {
		b.WriteString(csvLine("acme:rest", fmt.Sprintf("rest:%d", i), hashA, day2, ""))
	}
	terms := terms(t)
	r, err := open(strings.NewReader(b.String()), &terms)
	require.NoError(t, err)
	for from, n := range map[int]int{0: 500} {
		c := r.chunk()
		require.Len(t, c.lines, n)
		require.Equal(t, from+2, c.at[0])
	}
	require.Equal(t, 502, r.chunk().at[0])
	last := r.chunk()
	require.Len(t, last.lines, 203)
	require.Equal(t, 1204, last.at[202])
	require.Equal(t, "rest:1202", last.lines[202].Key.Key)
}
