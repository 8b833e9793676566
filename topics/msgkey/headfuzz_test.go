package msgkey_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// addHead seeds a target with what pick takes of every vector of a format.
func addHead(f *testing.F, format string, pick func(v vector, header func(string) string)) {
	f.Helper()
	for _, v := range append(readVectors(f), moreHeadVectors(f)...) {
		if v.Format != format {
			continue
		}
		look := lookUp(v.headers(f))
		pick(v, func(name string) string {
			value, _ := look(name, 0)
			return string(value)
		})
	}
}

// checkHead states what holds for every input of an extractor: nothing is
// changed, a code is of the closed list, and a key is canonical and found again.
func checkHead(t *testing.T, o msgkey.Options, name string, value []byte, headers map[string]string) string {
	t.Helper()
	before := bytes.Clone(value)
	found, code := attemptWith(t, o, name, message(value, headers))
	require.Equal(t, before, value, "the value was changed")
	require.Contains(t, append(msgkey.Codes(), ""), code)
	require.Equal(t, code == "", found.Key != "")
	if code == "" {
		require.Equal(t, name, found.Extractor)
		require.True(t, strings.HasPrefix(found.Key, name+":"))
		requireRoundTrip(t, found.Key)
		require.Equal(t, found.Key, found.KeyWithDate())
	}
	return found.Key
}

func FuzzAS4(f *testing.F) {
	addHead(f, "as4", func(v vector, header func(string) string) { f.Add(v.value(f), header("content-type")) })
	f.Add([]byte("--\n"), "")
	f.Add([]byte("--B\n\n<a/>\n--B--"), "multipart/related; boundary*=utf-8''B; start=\"\\<\"")
	f.Fuzz(func(t *testing.T, value []byte, contentType string) {
		headers := map[string]string{"content-type": contentType}
		key := checkHead(t, msgkey.Options{}, msgkey.AS4, value, headers)
		lenient := checkHead(t, msgkey.Options{Lenient: true}, msgkey.AS4, value, headers)
		if key != "" {
			require.Equal(t, key, lenient, "strict refuses more, and reads nothing else")
		}
		for _, mode := range []string{msgkey.HashMIMEParts, msgkey.HashMIMEPayload} {
			m, err := msgkey.NewMode(mode)
			require.NoError(t, err)
			sum, ok := m.Canonical(message(value, headers))
			again, same := m.Canonical(message([]byte("\xEF\xBB\xBF\r\n"+refClean(string(value))), headers))
			require.Equal(t, ok, same)
			require.Equal(t, sum, again, "a byte order mark and blanks before it")
		}
	})
}

func FuzzAS2(f *testing.F) {
	addHead(f, "as2", func(_ vector, header func(string) string) { f.Add(header("message-id"), header("as2-from")) })
	f.Fuzz(func(t *testing.T, id, from string) {
		key := checkHead(t, msgkey.Options{}, msgkey.AS2, nil, map[string]string{"message-id": id, "as2-from": from})
		if key != "" {
			bracketed := checkHead(t, msgkey.Options{}, msgkey.AS2, nil, map[string]string{"message-id": " " + id + "\r\n ", "as2-from": "\t" + from + " "})
			require.Equal(t, key, bracketed, "outer blanks")
		}
	})
}

func FuzzOFTP2(f *testing.F) {
	addHead(f, "oftp2", func(_ vector, header func(string) string) {
		f.Add(header("oftp2-sfid"), header("oftp2-dsn"), header("oftp2-date"), header("oftp2-time"), true)
	})
	f.Fuzz(func(t *testing.T, sfid, dsn, date, time string, old bool) {
		headers := map[string]string{"oftp2-sfid": sfid, "oftp2-dsn": dsn, "oftp2-date": date, "oftp2-time": time, "oftp2-orig": "O/1", "oftp2-dest": "O:2"}
		key := checkHead(t, msgkey.Options{OFTP1Dates: old}, msgkey.OFTP2, nil, headers)
		if key != "" && strings.Trim(sfid, " \t\r\n") == "" {
			trim := func(s string) msgkey.Field { return msgkey.Field{strings.TrimRight(s, " ")} }
			require.Equal(t, msgkey.Encode("oftp2", trim("O/1"), trim("O:2"), trim(dsn), trim(date), trim(time)), key)
		}
	})
}

func FuzzSFTP(f *testing.F) {
	addHead(f, "sftp", func(v vector, header func(string) string) {
		f.Add(v.value(f), header("sftp-account"), header("sftp-filename"))
	})
	f.Fuzz(func(t *testing.T, value []byte, account, path string) {
		headers := map[string]string{"sftp-account": account, "sftp-filename": path}
		key := checkHead(t, msgkey.Options{}, msgkey.SFTP, value, headers)
		pattern := checkHead(t, msgkey.Options{FilePattern: `^([A-Z]+)_([0-9]*)`}, msgkey.SFTP, value, headers)
		require.Equal(t, key == "", pattern == "")
		if key != "" {
			require.NotEqual(t, key, checkHead(t, msgkey.Options{}, msgkey.SFTP, append(bytes.Clone(value), 0), headers), "other content")
		}
	})
}

func FuzzREST(f *testing.F) {
	addHead(f, "rest", func(_ vector, header func(string) string) { f.Add(header("idempotency-key"), header("x-client-id")) })
	f.Fuzz(func(t *testing.T, key, client string) {
		got := checkHead(t, msgkey.Options{}, msgkey.REST, nil, map[string]string{"idempotency-key": key, "x-client-id": client})
		bare := strings.Trim(key, " \t\r\n")
		if got == "" || strings.HasPrefix(bare, `"`) {
			return
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(bare) + `";p=1`
		require.Equal(t, got, checkHead(t, msgkey.Options{}, msgkey.REST, nil, map[string]string{"idempotency-key": quoted, "x-client-id": client}))
	})
}

// FuzzJSON compares with encoding/json.
func FuzzJSON(f *testing.F) {
	addHead(f, "json", func(v vector, header func(string) string) { f.Add(v.value(f), header("x-dedup-pointers")) })
	f.Add([]byte(`{"a\u0000":[[],"\"]}",{"b":-0e-1}]}`), "/a\x00/2/b")
	f.Fuzz(func(t *testing.T, value []byte, pointer string) {
		o := msgkey.Options{JSONPointers: []string{pointer}}
		if _, err := o.NewChain(msgkey.JSON); err != nil {
			return
		}
		key := checkHead(t, o, msgkey.JSON, value, nil)
		if key == "" {
			return
		}
		d := json.NewDecoder(strings.NewReader(refClean(string(value))))
		d.UseNumber()
		var at any
		require.NoError(t, d.Decode(&at))
		for token := range strings.SplitSeq(pointer[1:], "/") {
			token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
			switch parent := at.(type) {
			case map[string]any:
				if !utf8.Valid(value) {
					return // encoding/json repairs names
				}
				at = parent[token]
			case []any:
				var n int
				require.NoError(t, json.Unmarshal([]byte(token), &n))
				at = parent[n]
			}
		}
		text, err := json.Marshal(at)
		require.NoError(t, err)
		if s, ok := at.(string); ok {
			text = []byte(s)
		}
		require.Equal(t, msgkey.Encode("json", msgkey.Field{string(text)}), key)
	})
}

func FuzzCE(f *testing.F) {
	addHead(f, "cloudevents", func(v vector, header func(string) string) {
		f.Add(v.value(f), header("content-type"), header("ce_id"), header("ce_source"))
	})
	f.Fuzz(func(t *testing.T, value []byte, contentType, id, source string) {
		binary := map[string]string{"ce_specversion": "1.0", "ce_id": id, "ce_source": source}
		key := checkHead(t, msgkey.Options{}, msgkey.CE, value, binary)
		require.Equal(t, id != "" && source != "", key != "")
		binary["content-type"] = contentType
		structured := checkHead(t, msgkey.Options{}, msgkey.CE, value, binary)
		if !strings.HasPrefix(strings.ToLower(strings.TrimLeft(contentType, " \t\r\n")), "application/cloudevents") {
			require.Equal(t, key, structured)
		}
	})
}

// FuzzHashEDI: new line ends, wrapping and a mark of end of file have no form.
func FuzzHashEDI(f *testing.F) {
	addVectors(f, "edifact")
	addVectors(f, "x12")
	f.Add([]byte(released))
	f.Add([]byte("UNB+UNOC:4+A+B+261102:0930+1'ABC+X*Y*?*+1.5'UNZ+1+1'"))
	f.Add([]byte(invoiceWith("SE*2", "BIN*22*~ISA*~IEA*1*000000001~~BDS*ASC*1*~~SE*2")))
	f.Add([]byte("ISA*00*0000000000*00*0000000000*00*000000000000000*00*000000000000000*000000*0000*0*00000*000000000*0*0*0\n0"))
	f.Add([]byte("ISA*00*0000000000*00*0000000000*00*000000000000000*00*000000000000000*000000*0000*0*00000*000000000*0*0*0 BIN*1*"))
	f.Add([]byte("ISA*00*0000000000*00*0000000000*00*000000000000000*00*000000000000000*000000*0000*0*00000*000000000*0*0*0\nIEA*"))
	f.Fuzz(func(t *testing.T, value []byte) {
		sum, ok := canonical(t, msgkey.HashEDI, string(value))
		if !ok {
			return
		}
		text := refClean(string(value))
		again, _ := canonical(t, msgkey.HashEDI, "\xEF\xBB\xBF \r\n"+text+" \r\n\x1A")
		require.Equal(t, sum, again)
		if msgkey.Sniff(value) != msgkey.FormatEDIFACT || strings.HasPrefix(text, "UNA") {
			return // a line end may be a service character there
		}
		again, ok = canonical(t, msgkey.HashEDI, wrap(text, 80, "\r\n"))
		require.True(t, ok)
		require.Equal(t, sum, again)
	})
}

// FuzzHashC14N: the canonical form is its own canonical form.
func FuzzHashC14N(f *testing.F) {
	for _, format := range []string{"ubl", "cii", "sbdh", "cxml", "as4"} {
		addVectors(f, format)
	}
	f.Add([]byte(wellFormed))
	f.Add([]byte("<?xml version='1.0' encoding='ISO-8859-15'?><?p\r\xE4?><\xE4 xmlns:p='u&#10;' p:a='\r\n\t&#13;\xA4'/><?q?>"))
	m, err := msgkey.NewMode(msgkey.HashC14N)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, value []byte) {
		form, ok := m.Form(&msgkey.Message{Value: value})
		if !ok {
			return
		}
		require.True(t, utf8.Valid(form))
		again, ok := m.Form(&msgkey.Message{Value: form})
		require.True(t, ok, "%q", form)
		require.Equal(t, string(form), string(again))
	})
}
