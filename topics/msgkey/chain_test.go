package msgkey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

const (
	orders  = "UNB+UNOC:3+SENDER:14+HUB:14+261102:0930+77001'\nUNH+1+ORDERS:D:96A:UN'\nUNT+2+1'\nUNZ+1+77001'\n"
	invoice = "ISA*00*          *00*          *ZZ*ACMEBUYER      *01*009876543      *261102*0930*^*00501*000004711*0*P*:~\n" +
		"GS*IN*ACMEBUYER*HUB*20261102*0930*88*X*005010~\nST*810*0001~\nSE*2*0001~\nGE*1*88~\nIEA*1*000004711~\n"
)

func TestChain(t *testing.T) {
	t.Parallel()
	utf16 := "\xFE\xFF\x00I\x00S\x00A\x00*"
	blank, key := map[string]string{"dedup-key": " "}, map[string]string{"dedup-key": "K1"}
	tests := map[string]struct {
		names   []string
		value   string
		headers map[string]string
		key     string
		from    string
		code    msgkey.Code
	}{
		"the first key wins":           {[]string{"header", "auto"}, orders, key, "hdr:K1", "header", ""},
		"a missing header goes on":     {[]string{"header", "auto"}, orders, nil, "edifact:SENDER:14/HUB:14/77001", "edifact", ""},
		"a blank header goes on":       {[]string{"header", "x12"}, invoice, blank, "x12:ZZ:ACMEBUYER/01:009876543/000004711", "x12", ""},
		"order matters":                {[]string{"auto", "header"}, orders, key, "edifact:SENDER:14/HUB:14/77001", "edifact", ""},
		"a broken payload falls back":  {[]string{"edifact", "header"}, orders[:40], key, "hdr:K1", "header", ""},
		"blank counts as found":        {[]string{"header", "auto"}, orders[:40], blank, "", "", msgkey.HeaderEmptyKey},
		"the found format's code":      {[]string{"header", "edifact", "x12"}, invoice[:50], nil, "", "", msgkey.X12ISATruncated},
		"no format":                    {[]string{"header", "edifact", "x12", "auto"}, "anything", nil, "", "", msgkey.KeyNotFound},
		"a format without extractor":   {[]string{"header", "auto"}, "<a/>", nil, "", "", msgkey.KeyNotFound},
		"a lying prefix is a format":   {[]string{"header", "auto"}, "ISABEL", nil, "", "", msgkey.X12BadSeparators},
		"tradacoms":                    {[]string{"header", "auto"}, "STX=ANA:1+", nil, "", "", msgkey.TradacomsNotSupported},
		"hl7":                          {[]string{"header", "auto"}, "MSH|^~\\&|", nil, "", "", msgkey.HL7NotSupported},
		"hl7 is no edifact":            {[]string{"edifact", "x12"}, "MSH|^~\\&|", nil, "", "", msgkey.KeyNotFound},
		"interactive":                  {[]string{"header", "auto"}, "UIB+UNOA:4'", nil, "", "", msgkey.EDIFACTInteractive},
		"utf-16 belongs to its format": {[]string{"edifact", "x12"}, utf16, nil, "", "", msgkey.X12Encoding},
		"utf-16, sniffed":              {[]string{"auto"}, utf16, nil, "", "", msgkey.X12Encoding},
		"null":                         {[]string{"header", "auto"}, "", nil, "", "", msgkey.EmptyPayload},
		"null, with a key":             {[]string{"header", "auto"}, "", key, "hdr:K1", "header", ""},
		"null, header alone":           {[]string{"header"}, "", nil, "", "", msgkey.KeyNotFound},
		"no extractors":                {nil, orders, key, "", "", msgkey.KeyNotFound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := msgkey.NewChain(tt.names...)
			require.NoError(t, err)
			found, code := c.Extract(message([]byte(tt.value), tt.headers))
			require.Equal(t, tt.code, code)
			require.Equal(t, tt.key, found.Key)
			require.Equal(t, tt.from, found.Extractor)
		})
	}
}

func TestChainWithoutHeaders(t *testing.T) {
	t.Parallel()
	c, err := msgkey.NewChain(msgkey.Header, msgkey.Auto)
	require.NoError(t, err)
	found, code := c.Extract(&msgkey.Message{Value: []byte(orders)})
	require.Empty(t, code)
	require.Equal(t, "edifact:SENDER:14/HUB:14/77001", found.Key)
	_, code = c.Extract(&msgkey.Message{})
	require.Equal(t, msgkey.EmptyPayload, code)
}

func TestAttemptsShowsEveryExtractor(t *testing.T) {
	t.Parallel()
	c, err := msgkey.NewChain("header", "x12", "edifact", "auto")
	require.NoError(t, err)
	a := c.Attempts(message([]byte(orders), nil))
	require.Len(t, a, 4)
	require.Equal(t, msgkey.HeaderMissingKey, a[0].Code)
	require.Equal(t, msgkey.X12NoISA, a[1].Code)
	require.Equal(t, a[2].Found, a[3].Found)
	require.Equal(t, "auto", a[3].Extractor)
	require.Equal(t, "edifact", a[3].Found.Extractor)
}

func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"header", "auto", "edifact", "x12", "ubl", "cii", "sbdh", "as4", "as2", "oftp2", "sftp", "rest", "json", "ce", "cxml"}, msgkey.Names())
	_, err := msgkey.NewChain("header", "idoc")
	var unknown *msgkey.UnknownError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "idoc", unknown.Name)
	require.ErrorContains(t, err, "header auto edifact x12 ubl cii")
}

func TestCodesAreUniqueLabels(t *testing.T) {
	t.Parallel()
	seen := map[msgkey.Code]bool{}
	for _, c := range msgkey.Codes() {
		require.Regexp(t, `^[a-z0-9_]+(\.[a-z0-9_]+)?$`, string(c))
		require.False(t, seen[c], c)
		seen[c] = true
	}
}

func TestPayloadSHA256(t *testing.T) {
	t.Parallel()
	require.Equal(t, msgkey.PayloadSHA256([]byte{}), msgkey.PayloadSHA256(nil))
	require.NotEqual(t, msgkey.PayloadSHA256([]byte("a")), msgkey.PayloadSHA256([]byte("b")))
}
