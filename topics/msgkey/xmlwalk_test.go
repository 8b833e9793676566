package msgkey_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// wellFormed has a little of everything that XML 1.0 with namespaces allows.
const wellFormed = `<?xml version='1.0' encoding="utf-8" standalone = 'yes' ?>
<!-- a - comment --><?target some text??>
<p:a xmlns:p='urn:p' xmlns="urn:d" b = "1 &gt; &#x41;'" p:b='2"' xml:lang="de"
><b xmlns=""/><c	>]] &lt;&amp;&apos;&quot;&#10;<![CDATA[<&]]]]><![CDATA[>]]></c
><ä·1 xmlns:q="urn:p" q:c="" c=''>é €𝄞</ä·1><?x?></p:a
> <!----> `

func TestXML(t *testing.T) {
	t.Parallel()
	in := func(inner string) string { return "<a>" + inner + "</a>" }
	tests := map[msgkey.Code][]string{
		"": {
			wellFormed, "<a/>", "<a></a >", "<a\n/>", "<a/>\r\n\x00\x1A", "<_-.0/>", in("]]"), in("]>"), in("\x7F"), in("<b></b><b/>"),
			`<?xml version="1.0"?><a/>`, `<?xml version="1.1"?><a/>`, `<a xmlns:xml="http://www.w3.org/XML/1998/namespace" xml:b=""/>`,
			`<a xmlns:p="u" xmlns:q="v" p:x="" q:x="" x=""/>`, `<a xmlns:p="u"><p:b xmlns:p="v"/><p:c/></a>`, `<a b=">"/>`,
			`<?xml version="1.0" encoding="ISO-8859-1"?><a b="` + "\xE4\x80" + `">` + "\xFF</a>",
			`<?xml version="1.0" encoding="windows-1252"?>` + "<\xE4/>",
		},
		msgkey.XMLNotWellFormed: {
			"", " ", "a", "<", "</", "<!", "<?", "<a", "<a ", "<a/", "<a>", "</a>", "<a></b>", "<a></a", "<a></ab>", "<ab></a>", "<a></a b>",
			"<a><b></a></b>", "<a/><b/>", "<a/>text", "text<a/>", "<a/>\x00<!---->", "<a/><![CDATA[]]>", "< a/>", "<1/>", "<-a/>", "<a:/>", "<:a/>", "<a:b:c/>",
			"<p:a/>", `<a p:b=""/>`, `<a><b xmlns:p="u"/><p:c/></a>`, `<xmlns:a/>`, `<a xmlns:p=""/>`, `<a xmlns:xml="u"/>`, `<a xmlns:xmlns="u"/>`,
			`<a xmlns="http://www.w3.org/XML/1998/namespace"/>`, `<a xmlns:p="http://www.w3.org/2000/xmlns/"/>`,
			`<a b="" b=""/>`, `<a xmlns:p="u" xmlns:q="u" p:x="" q:x=""/>`, `<a xml:b="" xml:b=""/>`, `<a xmlns="u" xmlns="v"/>`,
			"<a b/>", "<a b=/>", "<a b=1/>", `<a b="/>`, `<a b="<"/>`, `<a b=""c=""/>`, `<a b="&"/>`, `<a b="&b;"/>`, "<a b='\x01'/>", `<a/ >`,
			in("&"), in("&;"), in("&lt"), in("&nbsp;"), in("&#;"), in("&#x;"), in("&#xD800;"), in("&#0;"), in("&#xFFFF;"), in("&#x110000;"), in("&#-1;"), in("&#" + strings.Repeat("0", 40) + "65;"),
			in("\x00"), in("\x1F"), in("\xFF"), in("\xC0\x80"), in("\xED\xA0\x80"), in("\xEF\xBF\xBF"), in("]]>"), in("\xE2\x82"),
			in("<!-- -- -->"), in("<!-- --->"), in("<!-->"), in("<!--\x01-->"), in("<![CDATA[\xFF]]>"), in("<![CDATA[]]"), in("<![cdata[]]>"), in("<!x>"), in("<!DOCTYPE a>"),
			in("<??>"), in("<? x?>"), in("<?x"), in("<?x y"), in("<?x?y?>"), in("<?p:x?>"), in("<?xml?>"), in("<?XML ?>"), in("<?x \x01?>"), in(`<?xml version="1.0"?>`), `<!----><?xml version="1.0"?><a/>`,
			"<?xml?><a/>", `<?xml version="2.0"?><a/>`, `<?xml version="1."?><a/>`, `<?xml encoding="utf-8"?><a/>`, `<?xml version="1.0"encoding="utf-8"?><a/>`,
			`<?xml version="1.0" standalone="yes" encoding="utf-8"?><a/>`, `<?xml version="1.0" standalone="maybe"?><a/>`, `<?xml version="1.0" x=""?><a/>`,
			`<?xml version="1.0" encoding="US-ASCII"?>` + in("\xE4"), `<?xml version="1.0" encoding="ISO-8859-1"?>` + "<\xD7/>",
		},
		msgkey.XMLDTDForbidden: {"<!DOCTYPE a><a/>", "<!DOCTYPE a SYSTEM 'x'><a/>", "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>"},
		msgkey.XMLEncoding: {
			`<?xml version="1.0" encoding="UTF-16"?><a/>`, `<?xml version="1.0" encoding="EBCDIC-CP-DE"?><a/>`,
			`<?xml version="1.0" encoding=""?><a/>`,
		},
		msgkey.XMLTooDeep: {
			strings.Repeat("<a>", 10_000), nested(201), "<a" + attributes(201) + "/>", strings.Repeat("<b xmlns:p='u' xmlns:q='u'>", 100) + "<b xmlns:p='u'/>" + strings.Repeat("</b>", 100),
			"<a xmlns='" + strings.Repeat("u", 64<<10+1) + "'/>",
		},
	}
	for want, documents := range tests {
		for _, d := range documents {
			code, _ := msgkey.WellFormed([]byte(d))
			require.Equal(t, want, code, "%.200q", d)
		}
	}
	bound := strings.Repeat("<b xmlns:p='u' xmlns:q='u'>", 100) + "<b/>" + strings.Repeat("</b>", 100)
	for _, d := range []string{nested(200), "<a" + attributes(200) + "/>", bound} {
		code, _ := msgkey.WellFormed([]byte(d))
		require.Empty(t, code)
	}
}

func nested(n int) string { return strings.Repeat("<a>", n) + strings.Repeat("</a>", n) }

func attributes(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" a" + strings.Repeat("b", i) + "=''")
	}
	return b.String()
}

// FuzzXML compares with encoding/xml, and by hand what that does not check.
func FuzzXML(f *testing.F) {
	f.Add([]byte(wellFormed))
	for _, v := range readVectors(f) {
		if data := v.value(f); len(data) > 0 && data[0] == '<' {
			f.Add(data)
		}
	}
	for _, d := range []string{
		"<a xmlns:p='u' xmlns:q='u' p:x='' q:x=''/>", "<a b=''c=''/>", "<a><?x?y?></a>", "<a>&#xD800;</a>", "<a/><![CDATA[ ]]>",
		"<!DOCTYPE a [<!ENTITY b '&b;&b;'>]><a>&b;</a>", "<a>\xED\xA0\x80</a>", "<a><b></a></b>", "<a/><b/>", "<a>" + strings.Repeat("<b>", 250),
	} {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		code, inUTF8 := msgkey.WellFormed(data)
		require.Equal(t, before, data, "the value was changed")
		if code == msgkey.XMLTooDeep || code == msgkey.XMLDTDForbidden || code == msgkey.XMLEncoding || !inUTF8 {
			return
		}
		text := strings.TrimRight(string(data), " \t\r\n\x00\x1A")
		if strings.HasPrefix(text, "<?xml") {
			_, rest, _ := strings.Cut(text, "?>")
			if code != "" {
				return // a declaration that is refused alone is in TestXML
			}
			text = rest
		}
		require.Equal(t, refXML(text) != nil, code == "", "%q", data)
	})
}
