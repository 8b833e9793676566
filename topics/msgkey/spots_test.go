package msgkey_test

import (
	"encoding/hex"
	"encoding/json"
	"html"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// TestFieldsStandWhereTheySay: of every vector with a key, and of a date that with_date
// would add, each field begins at its offset or its header is there. Only what is made
// of the content, or unpacked, is nowhere.
func TestFieldsStandWhereTheySay(t *testing.T) {
	t.Parallel()
	nowhere := map[string]bool{}
	stood := map[string]int{}
	for _, v := range allKeyVectors(t) {
		m := v.message(t)
		chain, err := v.options(t).NewChain(v.extractor())
		require.NoError(t, err)
		a := chain.Attempts(m)[0]
		require.Empty(t, a.Code)
		fields := a.Fields
		if a.Date.Value != "" {
			fields = append(slices.Clip(fields), a.Date)
		}
		for _, f := range fields {
			switch {
			case f.Header != "":
				_, ok := m.Header(f.Header, 0)
				require.True(t, ok, "%s: no header %s", v.Name, f.Header)
				require.Equal(t, msgkey.Nowhere, f.Offset)
			case f.Offset != msgkey.Nowhere:
				stood[a.Found.Extractor]++
				want := inFile(t, &v, f)
				require.Equal(t, want, plainly(t, &v, m.Value[f.Offset:], want), "%s: %s %s", v.Name, f.Name, f.Value)
			case f.Value != "" && !strings.HasPrefix(f.Name, "SHA-256 of the content"):
				nowhere[v.Name] = true
			}
		}
	}
	require.Equal(t, map[string]bool{"soap-in-base64": true, "soap-in-quoted-printable": true}, nowhere)
	for _, format := range []string{"edifact", "x12", "ubl", "cii", "sbdh", "cxml", "as4", "json", "ce"} {
		require.Positive(t, stood[format], format)
	}
}

func allKeyVectors(t *testing.T) (all []vector) {
	t.Helper()
	for _, file := range []string{"message-keys", "more-keys", "more-head-keys"} {
		all = append(all, readVectorsOf(t, "testdata/"+file+".jsonl")...)
	}
	return slices.DeleteFunc(all, func(v vector) bool { return v.Key == "" })
}

// inFile is what a field of a key looks like in the message, its first part at least.
func inFile(t *testing.T, v *vector, f msgkey.KeyField) string {
	t.Helper()
	parts := strings.Split(strings.TrimLeft(f.Value, ":"), ":")
	part := parts[0]
	switch {
	case f.Name == "invoice or credit note" && v.Format == "ubl":
		part = map[string]string{"inv": "Invoice", "cn": "CreditNote"}[part]
	case f.Name == "invoice or credit note":
		part = map[string]string{"inv": "38", "cn": "381"}[part] // 380, 384
	case f.Name == "test indicator" && v.Format != "x12":
		part = map[string]string{"edifact": "1", "cxml": "test"}[v.Format]
	case strings.HasPrefix(f.Name, "seller"):
		part = parts[len(parts)-1]
	case f.Name == "BT-2 issue date" && v.Format == "cii":
		part = strings.ReplaceAll(part, "-", "")
	case f.Name == "ISA13 control number":
		part = strings.TrimLeft(part, "0") // lenient, it is padded
	}
	return unescaped(t, part)
}

func unescaped(t *testing.T, part string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] != '%' {
			b.WriteByte(part[i])
			continue
		}
		octet, err := hex.DecodeString(part[i+1 : i+3])
		require.NoError(t, err)
		b.Write(octet)
		i += len("%XX") - 1
	}
	return b.String()
}

// plainly is the text that a file has in front, as a key would have it, as long as want.
func plainly(t *testing.T, v *vector, raw []byte, want string) string {
	t.Helper()
	text := string(raw[:min(len(raw), 2000)])
	switch v.Format {
	case "edifact", "x12":
		text = strings.NewReplacer("\r", "", "\n", "", `\`, "").Replace(text)
		if !strings.Contains(want, "?") { // else there is no release character
			text = strings.ReplaceAll(text, "?", "")
		}
		if v.Format == "x12" && !strings.HasPrefix(want, "0") { // ISA13, as above
			text = strings.TrimLeft(text, "0")
		}
	case "json":
		if quoted, _, _ := strings.Cut(text, `"`); strings.Contains(quoted, `\`) {
			require.NoError(t, json.Unmarshal([]byte(`"`+quoted+`"`), &text))
		}
	case "ubl", "cii", "sbdh", "cxml", "as4":
		if first := text[:min(8, len(text))]; !utf8.ValidString(first) { // of an encoding of one octet each
			text = strings.NewReplacer("\xD6", "Ö", "\x80", "€").Replace(first) + text[len(first):]
		}
		text = html.UnescapeString(strings.NewReplacer("<![CDATA[", "", "]]>", "").Replace(text))
		text = strings.Join(strings.Fields(text), " ")
		if !strings.HasPrefix(text, "DE") && strings.HasPrefix(strings.ToUpper(text), "DE") || strings.HasPrefix(text, "DE ") { // a VAT number
			text = strings.ToUpper(strings.NewReplacer(" ", "", ".", "", "-", "").Replace(text))
		}
	}
	return text[:min(len(want), len(text))]
}

// TestFieldsOfWrappedFiles: the offset is that in the file as it is, whatever was wrapped
// or put in front.
func TestFieldsOfWrappedFiles(t *testing.T) {
	t.Parallel()
	const isa = "ISA*00*          *00*          *ZZ*A              *01*B              *261102*0930*^*00501*000000007*0*T*:~" +
		"GS*PO*GA*GB*20261102*0930*9*X*005010~ST*850*0001~SE*2*0001~GE*1*9~IEA*1*000000007~"
	const unb = "UNB+UNOC:3+?A?++B+261102:0930+77001++++++1'UNH+?1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+77001'"
	for _, c := range []struct {
		extractor, text, breaks string
		fields                  []string // what each begins with
		date                    string
	}{
		{"x12", isa, "", []string{"ZZ*A", "01*B", "000000007*0", "PO*GA", "850*", "T*:"}, "261102*0"},
		{"x12", isa, "\r\n", []string{"ZZ*A", "01*B", "000000007*0", "PO*GA", "850*", "T*:"}, "261102*0"},
		{"edifact", unb, "", []string{"A?+", "B+26", "77001+", "1+ORD", "1'UNH"}, "261102:"},
		{"edifact", unb, "\n", []string{"A?+", "B+26", "77001+", "1+ORD", "1'UNH"}, "261102:"},
	} {
		for every := 8; every < 100; every += 3 {
			const front = "\xEF\xBB\xBF \r\n"
			file, moved := broken(c.text, c.breaks, every)
			at := func(begin string) int { return len(front) + moved(strings.Index(c.text, begin)) }
			chain, err := msgkey.Options{EDIFACTMessages: true, X12Level: msgkey.X12Transactions}.NewChain("auto")
			require.NoError(t, err)
			a := chain.Attempts(message([]byte(front+file), nil))[0]
			require.Equal(t, c.extractor, a.Found.Extractor, "%d %v", every, a.Code)
			var got, want []int
			for i, f := range a.Fields {
				got, want = append(got, f.Offset), append(want, at(c.fields[i]))
			}
			require.Equal(t, want, got, "%s broken every %d", c.extractor, every)
			require.Equal(t, at(c.date), a.Date.Offset)
			require.Len(t, c.fields, len(got))
		}
	}
}

// broken puts breaks into a text and tells where an octet of it has gone.
func broken(text, breaks string, every int) (string, func(int) int) {
	var b strings.Builder
	for i := range len(text) {
		if i > 0 && i%every == 0 {
			b.WriteString(breaks)
		}
		b.WriteByte(text[i])
	}
	return b.String(), func(at int) int { return at + at/every*len(breaks) }
}

// TestFieldsBehindWhatDoesNotCount: blanks, comments, instructions, empty sections and
// brackets before a value are not its begin.
func TestFieldsBehindWhatDoesNotCount(t *testing.T) {
	t.Parallel()
	const sbdh = `<StandardBusinessDocument xmlns="http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader"><StandardBusinessDocumentHeader>` +
		`<Sender><Identifier>0088:1</Identifier></Sender><DocumentIdentification><InstanceIdentifier>VALUE</InstanceIdentifier></DocumentIdentification>` +
		`</StandardBusinessDocumentHeader></StandardBusinessDocument>`
	const as4 = `<S:Envelope xmlns:S="http://www.w3.org/2003/05/soap-envelope"><S:Header><Messaging xmlns="http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/">` +
		`<UserMessage><MessageInfo><MessageId>VALUE</MessageId></MessageInfo><PartyInfo><From><PartyId>P</PartyId></From></PartyInfo></UserMessage></Messaging></S:Header></S:Envelope>`
	const edifact = "UNB+UNOC:3+VALUE+B+261102:0930+7'UNZ+0+7'"
	for _, c := range []struct {
		extractor, file string
		field           int
		values          []string
	}{
		{"edifact", edifact, 0, []string{"IT", "  IT", "\r\n IT ", "?I?T"}},
		{"sbdh", sbdh, 1, []string{
			"IT", " \n IT", "<!-- I -->IT", "<?I ?> <!--I--> IT", "<![CDATA[IT]]>", "<![CDATA[ IT]]>", "<![CDATA[]]>IT", "<![CDATA[ ]]> <!-- --><![CDATA[IT]]>", "&#32;&#x0A;IT",
		}},
		{"as4", as4, 1, []string{"IT", "&lt;IT&gt;", " &lt; IT &gt;", "<![CDATA[<IT>]]>", "&lt;IT"}},
	} {
		chain, err := msgkey.NewChain(c.extractor)
		require.NoError(t, err)
		for _, value := range c.values {
			file := strings.Replace(c.file, "VALUE", value, 1)
			want := strings.Index(file, "IT")
			switch value {
			case "?I?T":
				want = strings.Index(file, "I?T")
			case "&lt;IT": // no pair, so it is of the id
				want = strings.Index(file, "&lt;IT")
			}
			a := chain.Attempts(message([]byte(file), nil))[0]
			require.Empty(t, a.Code, file)
			require.Equal(t, want, a.Fields[c.field].Offset, value)
		}
	}
	chain, err := msgkey.NewChain("sbdh")
	require.NoError(t, err)
	a := chain.Attempts(message([]byte(strings.Replace(sbdh, "VALUE", "<x>I</x>IT", 1)), nil))[0]
	require.Equal(t, msgkey.Nowhere, a.Fields[1].Offset, "behind a child element, which is not told")
}
