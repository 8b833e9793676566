package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "m.edi")
	require.NoError(t, os.WriteFile(file, []byte(interchange), 0o600))
	require.Equal(t, outcome{0, interchangeKey + "\n", ""}, call{}.run(t, "key", file))
	require.Equal(t, outcome{0, interchangeKey + "\n", ""}, call{stdin: []byte(interchange)}.run(t, "key", "--format", "edifact", "-"))
	require.Equal(t, outcome{0, "hdr:b%2Fc\n", ""}, call{}.run(t, "key", "--header", "dedup-key=a", "--header", "dedup-key=b/c", file))
	require.Equal(t, outcome{0, "hdr:a\n", ""}, call{}.run(t, "key", "--header", "Dedup-Key=a", file), "in any case, as the filter reads it")
	o := call{}.run(t, "key", "-o", "json", file)
	require.JSONEq(t, `{"key":"`+interchangeKey+`","extractor":"edifact","size":105,"sha256":"`+sum(interchange)+`"}`, o.stdout)
	require.Equal(t, exitDone, o.code)
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

func TestNoKey(t *testing.T) {
	t.Parallel()
	cut := []byte(strings.TrimSuffix(interchange, "UNZ+1+77001'"))
	require.Equal(t, outcome{1, "", "edifact.no_unz\n"}, call{stdin: cut}.run(t, "key", "-"))
	require.Equal(t, outcome{0, interchangeKey + "\n", ""}, call{stdin: cut}.run(t, "key", "--lenient", "-"))
	o := call{stdin: []byte(interchange[:60])}.run(t, "key", "-o", "json", "-")
	require.Equal(t, "edifact.unb_unterminated\n", o.stderr)
	require.JSONEq(t, `{"code":"edifact.unb_unterminated","size":60,"sha256":"`+sum(interchange[:60])+`"}`, o.stdout)
	require.Equal(t, outcome{1, "", "empty_payload\n"}, call{}.run(t, "key", "-"))
	require.Equal(t, outcome{1, "", "header.empty_key\n"}, call{stdin: []byte("x")}.run(t, "key", "--header", "dedup-key= ", "-"))
	o = call{}.run(t, "key", "/nowhere/m.edi")
	require.Equal(t, outcome{1, "", "dedup: opening the message: open /nowhere/m.edi: no such file or directory\n"}, o)
}

// TestKeyOfManyFiles: a line for each file, whatever becomes of the others.
func TestKeyOfManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.edi"), filepath.Join(dir, "bad.edi")
	require.NoError(t, os.WriteFile(good, []byte(interchange), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("nothing"), 0o600))
	require.Equal(t, outcome{1, good + "\t" + interchangeKey + "\n", bad + ": key.not_found\n"}, call{}.run(t, "key", bad, good))
	require.Equal(t, outcome{0, good + "\t" + interchangeKey + "\n" + good + "\t" + interchangeKey + "\n", ""}, call{}.run(t, "key", good, good))

	o := call{}.run(t, "key", "-o", "jsonl", good, bad)
	require.Equal(t, exitFailed, o.code)
	require.Equal(t, bad+": key.not_found\n", o.stderr)
	lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
	require.Len(t, lines, 2)
	require.JSONEq(t, `{"file":"`+good+`","key":"`+interchangeKey+`","extractor":"edifact","size":105,"sha256":"`+sum(interchange)+`"}`, lines[0])
	require.JSONEq(t, `{"file":"`+bad+`","code":"key.not_found","size":7,"sha256":"`+sum("nothing")+`"}`, lines[1])
	o = call{stdin: []byte("nothing")}.run(t, "key", "-o", "jsonl", "-")
	require.Equal(t, "key.not_found\n", o.stderr, "of one file the code alone")
}

// TestControlNumbersOfSeveralInterchanges: who has to split a file is told what is in it.
func TestControlNumbersOfSeveralInterchanges(t *testing.T) {
	t.Parallel()
	const isa = "ISA*00*          *00*          *ZZ*A              *ZZ*B              *261102*0930*^*00501*00000000N*0*P*:~IEA*0*00000000N~"
	x12 := strings.ReplaceAll(isa, "N*", "1*") + "\r\n" + strings.ReplaceAll(isa, "N*", "2*")
	x12 = strings.ReplaceAll(x12, "N~", "1~")
	edi := interchange + "\n" + "UNA:+.? '" + strings.ReplaceAll(interchange, "77001", "77?'2") + interchange[:10]
	for text, want := range map[string][2]string{
		edi: {"2 interchanges, control numbers 77001 77%272\n", "edifact.multiple_interchanges\n"},
		x12: {"2 interchanges, control numbers 000000001 000000002\n", "x12.multiple_interchanges\n"},
	} {
		require.Equal(t, outcome{1, want[0], want[1]}, call{stdin: []byte(text)}.run(t, "key", "-"))
	}
	var k keyed
	require.NoError(t, json.Unmarshal([]byte(call{stdin: []byte(edi)}.run(t, "key", "-o", "json", "-").stdout), &k))
	require.Equal(t, []string{"77001", "77%272"}, k.ControlNumbers)

	// The chain goes on to the transport's id, or another code comes first.
	args := []string{"key", "--scope", "acme:as2", "-c", configured(t), "-"}
	for _, end := range []outcome{{exitDone, "as2:A/1@a", ""}, {1, "header.empty_key", "header.empty_key\n"}} {
		header := "message-id=1@a"
		if end.code != exitDone {
			header = "dedup-key= "
		}
		o := call{stdin: []byte(edi)}.run(t, append([]string{"key", "--header", "as2-from=A", "--header", header}, args[1:]...)...)
		require.Equal(t, end.code, o.code, o.stderr)
		require.Equal(t, end.stderr, o.stderr)
		require.Regexp(t, `(?m)^(key|no key) +`+end.stdout+`$`, o.stdout)
		require.Regexp(t, `(?m)^control numbers +77001 77%272$`, o.stdout)
	}
}

// TestKeyOfAFlow: with --scope the flow's rules are at work, each extractor and the line
// of each setting shown.
func TestKeyOfAFlow(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dedup.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
topics: {header_names: {message-id: X-AS2-Id}}
flows:
  - {match: "acme:edi", key: "edifact:4098765000014:14/*", window: 1d, with_date: true, namespace: b2b}
  - {match: "acme:edi", extractors: [header, x12, auto, as2], aliases: [as2, rest], hash: edi}
`), 0o600))
	args := []string{"key", "--scope", "acme:edi", "-c", file, "--header", "x-as2-id=<1@a>", "--header", "as2-from=A", "-"}
	o := call{stdin: []byte(interchange)}.run(t, args...)
	require.Equal(t, exitDone, o.code, o.stderr)
	for _, line := range []string{
		`flow +acme:edi`, `key +` + interchangeKey + `/261102`, `aliases +as2:A/1@a`, `ledger scope +acme:b2b`, `window +1d`,
		`sha256 +` + sum(interchange) + ` of 105 bytes`, `edi/1 +[0-9a-f]{64}`,
		`header +header.missing_key`, `x12 +x12.no_isa`, `auto: edifact \(the key\) +` + interchangeKey, `as2 +as2:A/1@a`,
		` +UNB 0020 control reference, byte 57: 77001`, ` +date, in the key with with_date, byte 45: 261102`, ` +header X-AS2-Id: 1@a`, ` +header as2-from: A`,
		`alias as2 +as2:A/1@a`, `alias rest +rest.missing_key`,
		`window +1d +` + file + `:4 +flows\[0\] acme:edi edifact:4098765000014:14/\*`,
		`aliases +as2, rest +` + file + `:5 +flows\[1\] acme:edi`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, o.stdout)
	}
	o = call{stdin: []byte("nothing")}.run(t, "key", "--scope", "acme:edi", "-c", file, "-o", "jsonl", "-")
	require.Equal(t, outcome{1, o.stdout, "key.not_found\n"}, o)
	var k keyed
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &k))
	require.Len(t, k.Flow.Tried, 6)
	require.Equal(t, "as2.missing_message_id", k.Flow.Tried[3].Code)
	require.Contains(t, o.stdout, `"aliases":[]`)

	o = call{environ: []string{"DEDUP_BUILTIN_RULES=false"}}.run(t, "key", "--scope", "acme:as2", "-")
	require.Equal(t, outcome{1, "", "dedup: acme:as2: no rule speaks of this flow and builtin_rules is false: its records are INVALID flow.unknown\n"}, o)
}

// TestKeyVectors runs every vector through the command, with the headers in their
// order, repeats included; pointers of JSON stand in a header of the samples.
func TestKeyVectors(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../../topics/msgkey/testdata/message-keys.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	ran := 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v struct {
			Format, Name string
			Payload      []byte          `json:"payload_base64"`
			Headers      json.RawMessage `json:"headers"`
			Key          string          `json:"expect_key"`
			Code         string          `json:"expect_error"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		ran++
		want := outcome{0, v.Key + "\n", ""}
		if v.Key == "" {
			want = outcome{1, "", v.Code + "\n"}
		}
		args := append([]string{"key", "--format", v.Format}, headerArgs(t, v.Headers)...)
		got := call{stdin: v.Payload}.run(t, append(args, "-")...)
		if strings.HasSuffix(v.Code, ".multiple_interchanges") {
			require.Contains(t, got.stdout, "interchanges, control numbers ")
			got.stdout = ""
		}
		require.Equal(t, want, got, "%s/%s", v.Format, v.Name)
	}
	require.NoError(t, lines.Err())
	require.Equal(t, 154, ran)
}

// headerArgs are the members of a JSON object as flags.
func headerArgs(t *testing.T, headers []byte) (args []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(headers))
	next := func() string {
		token, err := d.Token()
		require.NoError(t, err)
		return fmt.Sprint(token)
	}
	next()
	for d.More() {
		args = append(args, "--header", next()+"="+next())
	}
	return args
}
