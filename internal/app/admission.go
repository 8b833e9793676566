package app

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/access"
)

// admissionKept is how long a refusal counts that was neither repeated nor
// followed by a connection: its client is gone.
const admissionKept = 2 * time.Minute

// admission hears of every connection that a Kafka client of the filter opens or
// fails to. Clients try again by themselves and say nothing, so without it a
// password that is wrong since an hour would show when the last old connection
// ends.
type admission struct {
	explain func(error) error
	log     *slog.Logger
	now     func() time.Time

	mu      sync.Mutex
	refused map[string]refusal // by broker
}

type refusal struct {
	sentence string // told when it changes; why has ports, which differ each time
	why      string
	at       time.Time
}

func newAdmission(explain func(error) error, log *slog.Logger) *admission {
	return &admission{explain: explain, log: log, now: time.Now, refused: map[string]refusal{}}
}

// OnBrokerConnect is kgo.HookBrokerConnect: err is of the dial, of TLS or of the
// login. A broker that is away is no matter of access and the cluster's own.
func (a *admission) OnBrokerConnect(broker kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	at := net.JoinHostPort(broker.Host, strconv.Itoa(int(broker.Port)))
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		if _, ok := a.refused[at]; ok {
			a.log.Info("Kafka takes new connections again", "broker", at)
		}
		delete(a.refused, at)
		return
	}
	r, ok := errors.AsType[*access.Refusal](a.explain(err))
	if !ok {
		return
	}
	why := r.Error()
	if a.refused[at].sentence != r.Sentence {
		a.log.Warn("a connection to Kafka was refused; it is tried again", "broker", at, "error", why)
	}
	a.refused[at] = refusal{sentence: r.Sentence, why: why, at: a.now()}
}

// why is the refusal that holds now, or "".
func (a *admission) why() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for at, r := range a.refused {
		if a.now().Sub(r.at) > admissionKept {
			delete(a.refused, at)
			continue
		}
		all = append(all, at+": "+r.why)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
