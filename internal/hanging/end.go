package hanging

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// End writes the markers that are missing (KIP-664's WriteTxnMarkers), as decided.
// It takes the right ALTER on the cluster. Done twice it does no harm: a marker
// without an open transaction ends nothing.
func End(ctx context.Context, o Options, t *Transaction) error {
	if t.Decision == Unknown {
		return fmt.Errorf("what Kafka decided on the transaction of %s, producer %d, epoch %d is not to be found any more: say it by --assume (docs/operations.md, Transactions that hang)", t.ID, t.Producer, t.Epoch)
	}
	cl, err := kgo.NewClient(o.Client...)
	if err != nil {
		return fmt.Errorf("making the Kafka client: %w", err)
	}
	defer cl.Close()
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	for _, p := range t.Places {
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID, m.ProducerEpoch, m.Committed, m.CoordinatorEpoch = t.Producer, t.Epoch, t.Decision == Committed, p.coordinator
		topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
		topic.Topic, topic.Partitions = p.Topic, []int32{p.Partition}
		m.Topics = append(m.Topics, topic)
		req.Markers = append(req.Markers, m)
	}
	// In turn, the group's offsets with the outputs: the broker takes them one by
	// one in any case, and what is left out by an error is found again.
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return fmt.Errorf("ending the transaction of %s: %w", t.ID, err)
	}
	var errs []error
	for _, m := range resp.Markers {
		for _, topic := range m.Topics {
			for _, p := range topic.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					errs = append(errs, fmt.Errorf("ending the transaction of %s on %s/%d: %w", t.ID, topic.Topic, p.Partition, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}
