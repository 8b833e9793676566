package processor

import (
	"bytes"
	"sync"

	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lz4Compressor writes LZ4 frames in blocks of 64 KiB, as Kafka's own client
// does. The client's compressor takes blocks of 4 MiB: two such buffers for each
// session that compresses, thrown away and made again with the garbage, and
// compressed outside the processor's caches.
type lz4Compressor struct{ writers sync.Pool }

func newLZ4() *lz4Compressor {
	return &lz4Compressor{writers: sync.Pool{New: func() any {
		w := lz4.NewWriter(nil)
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb)); err != nil {
			return err // no writer: the client then sends as it is
		}
		return w
	}}}
}

// Compress is called by the client for each batch.
func (c *lz4Compressor) Compress(dst *bytes.Buffer, src []byte, _ ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	w, ok := c.writers.Get().(*lz4.Writer)
	if !ok {
		return nil, kgo.CodecError
	}
	defer c.writers.Put(w)
	w.Reset(dst)
	if _, err := w.Write(src); err != nil {
		return nil, kgo.CodecError
	}
	if err := w.Close(); err != nil {
		return nil, kgo.CodecError
	}
	return dst.Bytes(), kgo.CodecLz4
}
