package msgkey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/msgkey"
)

// TestFieldsAreTheKey: of every vector the fields make up the key, and each has a name;
// a test indicator is told from a field of the message.
func TestFieldsAreTheKey(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"message-keys", "more-keys", "more-head-keys"} {
		for _, v := range readVectorsOf(t, "testdata/"+file+".jsonl") {
			if v.Key == "" {
				continue
			}
			chain, err := v.options(t).NewChain(v.extractor())
			require.NoError(t, err)
			a := chain.Attempts(v.message(t))[0]
			require.Empty(t, a.Code)
			found := a.Found
			var values []string
			for _, f := range a.Fields {
				require.NotEmpty(t, f.Name, "%s of %s", f.Value, v.Name)
				values = append(values, f.Value)
			}
			if found.Extractor == msgkey.Header {
				require.Equal(t, []string{found.FullKey()}, values)
				continue
			}
			_, rest, _ := strings.Cut(found.FullKey(), ":")
			require.Equal(t, rest, strings.Join(values, "/"))
			last := a.Fields[len(values)-1]
			require.Equal(t, last.Value == "T" || last.Value == "I", last.Name == "test indicator", "%s", v.Key)
		}
	}
	require.Empty(t, msgkey.Found{}.Fields())
}

// TestInterchangesEnd: however a file with several is cut, the list is a beginning of
// the whole one; and it is bounded.
func TestInterchangesEnd(t *testing.T) {
	t.Parallel()
	one := "UNB+UNOC:3+A+B+261102:0930+7'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+7'\r\n"
	isa := "ISA*00*          *00*          *ZZ*A              *ZZ*B              *261102*0930*^*00501*000000007*0*P*:~BIN*4*ISA*~IEA*0*000000007~\n"
	for _, text := range []string{one + strings.ReplaceAll(one, "7'", "8'"), isa + strings.ReplaceAll(isa, "7", "8")} {
		all := msgkey.Interchanges([]byte(text))
		require.Len(t, all, 2)
		for cut := range text {
			got := msgkey.Interchanges([]byte(text[:cut]))
			require.Equal(t, strings.Join(all[:len(got)], " "), strings.Join(got, " "))
		}
	}
	require.Len(t, msgkey.Interchanges([]byte(strings.Repeat(one, 1100))), 1000)
	require.Empty(t, msgkey.Interchanges([]byte("<x/>")))
}
