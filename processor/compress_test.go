package processor

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestLZ4IsReadByAnyClient(t *testing.T) {
	t.Parallel()
	c := newLZ4()
	for _, size := range []int{0, 1, 64 << 10, 1 << 20} {
		src := []byte(strings.Repeat("UNB+UNOC:3+", size/11+1)[:size])
		for range 2 { // a writer is used again
			var dst bytes.Buffer
			out, codec := c.Compress(&dst, src)
			require.Equal(t, kgo.CodecLz4, codec)
			back, err := io.ReadAll(lz4.NewReader(bytes.NewReader(out)))
			require.NoError(t, err)
			require.True(t, bytes.Equal(src, back), "%d bytes", size)
			theirs, err := kgo.DefaultDecompressor().Decompress(out, codec)
			require.NoError(t, err)
			require.True(t, bytes.Equal(src, theirs), "%d bytes", size)
		}
	}
}
