package crash

import "sync"

// kind is what happens at a point.
type kind uint8

const (
	die    kind = iota + 1 // the process ends there, as by kill -9
	fail                   // what is asked for there fails and is not done; between two steps: the next call
	hang                   // it takes its time
	cancel                 // the context of a call ends; between two steps: the process is told to stop
	lose                   // it is done, and the answer is lost; between two steps: of the next call
)

var kinds = []kind{die, fail, hang, cancel, lose}

func (k kind) String() string {
	return [...]string{"none", "crash", "error", "hang", "cancel", "lost"}[k]
}

// Points are of three sorts: steps, by their name in the filter's source; calls,
// before ("ask Register") and behind ("Register is back"); requests over the
// wire to Kafka likewise.
const (
	before = "ask "
	behind = " is back"
)

// visit is a point, what happens there, and what is in hand.
type visit struct {
	point string
	kind  kind
	shape string
}

// traps of a lane wait for the process to come by. They outlive a process: its
// successor may be the one to fall in.
type traps struct {
	mu    sync.Mutex
	armed []*trap
	ready []*trap // armed when the first has been sprung
}

type trap struct {
	visit
	sprung bool
}

// set is a trap at each place.
func set(vs ...visit) (ts []*trap) {
	for _, v := range vs {
		ts = append(ts, &trap{visit: v})
	}
	return ts
}

func (ts *traps) arm(more ...*trap) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.armed = append(ts.armed, more...)
}

// after arms traps once another has been sprung.
func (ts *traps) after(more ...*trap) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.ready = append(ts.ready, more...)
}

// pass says what happens at a point: at most one trap is sprung at a time.
func (ts *traps) pass(point string) kind {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for i, t := range ts.armed {
		if t.point != point {
			continue
		}
		t.sprung = true
		ts.armed = append(ts.armed[:i], ts.armed[i+1:]...)
		ts.armed = append(ts.armed, ts.ready...)
		ts.ready = nil
		return t.kind
	}
	return 0
}

// disarm takes away what was not sprung.
func (ts *traps) disarm() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.armed, ts.ready = nil, nil
}

func (ts *traps) left() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.armed) + len(ts.ready)
}
