package processor

import "sync"

// bell wakes all sessions of a process that wait before they ask the ledger again,
// when one of them has had an answer. Each waits longer the longer it asks in
// vain, up to seconds, and at its own moments, so that the ledger is not asked by all
// at once; without the bell some partitions would go on seconds behind others.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed when the bell rings next.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
