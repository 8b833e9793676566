package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type keyVector struct {
	Format, Name string
	Payload      []byte          `json:"payload_base64"`
	Headers      json.RawMessage `json:"headers"`
	Key          string          `json:"expect_key"`
}

// vectorsByName are those of the specification, as format/name.
func vectorsByName(t *testing.T) map[string]keyVector {
	t.Helper()
	f, err := os.Open("../../topics/msgkey/testdata/message-keys.jsonl")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	all := map[string]keyVector{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v keyVector
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		all[v.Format+"/"+v.Name] = v
	}
	require.NoError(t, lines.Err())
	return all
}

// TestKeyTellsWhereFieldsStand: of one file of each format, --scope tells for each field
// of the key the header, or the octet of the file, that it stands at, as text and as
// JSON. A field is told here as what the file has there and nowhere else.
func TestKeyTellsWhereFieldsStand(t *testing.T) {
	t.Parallel()
	vectors := vectorsByName(t)
	for name, places := range map[string][]string{
		"edifact/una-default-then-crlf":        {"4098765000014:14+40", "4012345000023:14+26", "77001'\r\nUNH", "261102:0930"},
		"edifact/test-indicator":               {"4098765000014:14+40", "4012345000023:14+26", "77001++", "1'\nUNH", "261102:0930"},
		"x12/tilde-lf":                         {"ZZ*ACME", "01*009", "000004711*0", "261102*0930*^"},
		"x12/wrapped-80-columns":               {"ZZ*ACME", "01*009", "000004711*0", "261102*093\r"},
		"ubl/inside-sbdh":                      {"Invoice xmlns", "DE 811569869<", "RE-2026-0042<", "2026-11-02<"},
		"cii/other-prefix":                     {"380<", "DE811569869<", "RE-2026-0042<", "20261102<"},
		"sbdh/whitespace-around-id":            {"0088:4098765000014<", "7d0c3a5e-2f5b-4c55-9a3a-1f0f6f7b9c11"},
		"as4/multipart-in-band-folded-headers": {"POP000123<", "5f6b1c1e-0a52-4f0e-9c1d-77aa@c2.example<"},
		"cxml/test-deployment":                 {"1793612345.512.83749@acme.example\"", "test\">"},
		"json/member-order-changed-same-key":   {"PO-7731\""},
		"cloudevents/structured-mode-upper-case-type": {
			"https://erp.acme.example/orders\"", "PO-7731-1\"",
		},
		"cloudevents/binary-mode-new-time-same-key": {"header ce_source", "header ce_id"},
		"as2/angle-brackets":                        {"header as2-from", "header X-Message"},
		"oftp2/header-fields":                       {"header oftp2-orig", "header oftp2-dest", "header oftp2-dsn", "header oftp2-date", "header oftp2-time"},
		"oftp2/raw-sfid-command":                    {"header oftp2-sfid", "header oftp2-sfid", "header oftp2-sfid", "header oftp2-sfid", "header oftp2-sfid"},
		"sftp/plain":                                {"header sftp-account", "header sftp-filename", ""},
		"rest/escaped-quote":                        {"header x-client-id", "header idempotency-key"},
		"header/opaque-plain":                       {"header dedup-key"},
	} {
		v, ok := vectors[name]
		require.True(t, ok, name)
		extractor := strings.Replace(v.Format, "cloudevents", "ce", 1)
		config := filepath.Join(t.TempDir(), "dedup.yaml")
		require.NoError(t, os.WriteFile(config, []byte(`
topics: {header_names: {message-id: X-Message}}
flows: [{match: "acme:*", extractors: [`+extractor+`], json_pointers: [/orderId]}]
`), 0o600))
		args := append([]string{"key", "--scope", "acme:all", "-c", config}, headerArgs(t, v.Headers)...)
		for i := range args {
			args[i] = strings.Replace(args[i], "Message-ID=", "x-message=", 1)
		}
		ask := func(more ...string) string {
			o := call{stdin: v.Payload}.run(t, append(append(args, more...), "-")...)
			require.Equal(t, exitDone, o.code, "%s: %s", name, o.stderr)
			return o.stdout
		}
		var k keyed
		require.NoError(t, json.Unmarshal([]byte(ask("-o", "json")), &k))
		require.Equal(t, v.Key, k.Key)
		fields := k.Flow.Tried[0].Fields
		require.Len(t, fields, len(places), name)
		text := ask()
		for i, f := range fields {
			header, isHeader := strings.CutPrefix(places[i], "header ")
			switch {
			case isHeader:
				require.Equal(t, header, f.Header, name)
				require.Nil(t, f.Offset)
				require.Regexp(t, `(?m)^ +`+f.Name+`(, header `+header+`)?: `+f.Value+`$`, text)
				require.Contains(t, text, "header "+header)
			case places[i] == "":
				require.Nil(t, f.Offset, name)
			default:
				require.NotNil(t, f.Offset, "%s: %s", name, f.Name)
				require.Equal(t, 1, strings.Count(string(v.Payload), places[i]), "%s: not one %q in %s", name, places[i], v.Payload)
				require.Equal(t, strings.Index(string(v.Payload), places[i]), *f.Offset, "%s: %s", name, f.Name)
				require.Contains(t, text, fmt.Sprintf("%s, byte %d: %s\n", f.Name, *f.Offset, f.Value))
			}
		}
	}
}
