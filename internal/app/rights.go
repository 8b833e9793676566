package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/processor"
	"dedupledger/topics"
	"dedupledger/topics/acl"
)

// rightsEvery is how often a running filter looks whether its rights on Kafka
// are still there. A right is tried where it is needed, too: this finds what is
// not needed yet, and has the words.
const rightsEvery = 10 * time.Second

// rights looks for rights on Kafka that the filter needs and has not.
type rights struct {
	cl     *kgo.Client
	adm    *kadm.Client
	router routerType
	who    acl.Principal
	group  string
	ids    func() []string // transactional ids of this process, under its present slot
	raw    map[string]bool // raw topics seen: one that may not be seen any more looks as if it were deleted
	scopes map[string]bool // outputs seen whose names records make: a tenant's, a flow's
}

func (a *app) newRights(cl *kgo.Client, r routerType) *rights {
	return &rights{
		cl: cl, adm: kadm.NewClient(cl), router: r, group: a.Config.Kafka.Group, ids: a.transactionalIDs,
		raw: map[string]bool{}, who: a.principal(),
	}
}

// principal is who is to be granted what is missing.
func (a *app) principal() acl.Principal {
	return acl.Principal{Name: a.Config.Kafka.Principal(), Bootstrap: strings.Join(a.Config.Kafka.Brokers, ",")}
}

func (a *app) transactionalIDs() (ids []string) {
	for i := range a.Config.Processor.Sessions {
		ids = append(ids, processor.TransactionalID(a.Config.Kafka.Group, int(a.number.Load()), i))
	}
	return ids
}

// check is an *acl.MissingError with all that is missing, another error if
// nothing can be told, or nil.
func (r *rights) check(ctx context.Context) error {
	missing, err := r.onTopics(ctx)
	if err != nil {
		return err
	}
	member, err := r.onGroup(ctx)
	if err != nil {
		return err
	}
	if missing = append(missing, member...); len(missing) == 0 {
		return nil
	}
	return &acl.MissingError{Principal: r.who, Rights: missing}
}

// endsStart is an error of check where it ends a start. What is missing on topics
// of single tenants and flows alone does not, or one tenant would keep all others
// waiting: their records wait, as they do where the topic is missing.
func (r *rights) endsStart(err error) error {
	lacking, ok := errors.AsType[*acl.MissingError](err)
	if ok && !slices.ContainsFunc(lacking.Rights, func(x acl.Right) bool { return x.Resource != acl.Topic || !r.scopes[x.Name.Text] }) {
		return nil
	}
	return err
}

// onTopics asks with the topics' metadata (KIP-430).
func (r *rights) onTopics(ctx context.Context) (acl.Rights, error) {
	all, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range all.Names() {
		if r.router.IsRaw(name) {
			r.raw[name] = true
		}
	}
	need, names := r.needed()
	layout, err := topics.FetchLayout(ctx, r.adm, names...)
	if err != nil {
		return nil, fmt.Errorf("asking for rights: %w", err)
	}
	for name := range r.raw {
		if layout.Count(name) == 0 && !layout.Hidden(name) {
			delete(r.raw, name) // gone
		}
	}
	return append(layout.Lacks(need), r.onScopes(all, names)...), nil
}

// onScopes are the rights that are missing on outputs whose names records make,
// as far as they may be seen. One that is hidden is found with its first record.
func (r *rights) onScopes(all kadm.TopicDetails, known []string) acl.Rights {
	layout := topics.LayoutOf(all)
	r.scopes = map[string]bool{}
	var need acl.Rights
	for raw := range r.raw {
		route, err := r.router.Route(raw)
		if err != nil || !route.PerScope() {
			continue // an error is told where the topic is assigned
		}
		for _, name := range layout.Outputs(route) {
			if !r.scopes[name] && !slices.Contains(known, name) {
				r.scopes[name] = true
				need = append(need, acl.Output(acl.Named(name))...)
			}
		}
	}
	slices.SortStableFunc(need, func(a, b acl.Right) int { return strings.Compare(a.Name.Text, b.Name.Text) })
	return layout.Lacks(need)
}

// list goes past the client's cache, as kadm does when it asks for operations: the
// cache also holds topics that were asked for by name and denied, and kadm has no
// list for them.
func (r *rights) list(ctx context.Context) (kadm.TopicDetails, error) {
	all, err := r.adm.ListTopics(kadm.WithAuthorizedOps(ctx))
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w", err)
	}
	return all, nil
}

// needed are the rights on the raw topics and their outputs, and the topics.
func (r *rights) needed() (need acl.Rights, names []string) {
	var raw, outputs []acl.Name
	add := func(to *[]acl.Name, name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
			*to = append(*to, acl.Named(name))
		}
	}
	for name := range r.raw {
		add(&raw, name)
		outs, err := r.router.Outputs(name)
		if err != nil {
			continue // told where the topic is assigned
		}
		for _, out := range outs {
			add(&outputs, out)
		}
	}
	byName := func(a, b acl.Name) int { return strings.Compare(a.Text, b.Text) }
	slices.SortFunc(raw, byName)
	slices.SortFunc(outputs, byName)
	for _, n := range raw {
		need = append(need, acl.Raw(n)...)
	}
	for _, n := range outputs {
		need = append(need, acl.Output(n)...)
	}
	return need, names
}

// onGroup asks with requests that are refused in any case and change nothing: a
// broker looks at the rights first. A heartbeat of nobody is UNKNOWN_MEMBER_ID;
// a producer id with a timeout of 0 is INVALID_TRANSACTION_TIMEOUT, before a
// producer of that transactional id would be fenced.
func (r *rights) onGroup(ctx context.Context) (missing acl.Rights, err error) {
	member := acl.Member(r.group)
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID = r.group, "nobody"
	resp, err := beat.RequestWith(ctx, r.cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		missing = append(missing, member[0])
	case !answered(err):
		return nil, fmt.Errorf("asking for rights on group %s: %w", r.group, err)
	}
	for _, id := range r.ids() {
		err := r.askProducer(ctx, id)
		switch {
		case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
			return append(missing, member[1]), nil
		case !answered(err):
			return nil, fmt.Errorf("asking for rights on transactional id %s: %w", id, err)
		}
	}
	return missing, nil
}

func (r *rights) askProducer(ctx context.Context, id string) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &id, 0
	resp, err := req.RequestWith(ctx, r.cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// answered tells a broker's word from the lack of one.
func answered(err error) bool {
	if err == nil {
		return true
	}
	told, ok := errors.AsType[*kerr.Error](err)
	return ok && !told.Retriable
}

// watchRights says while the filter runs which rights are missing: in /readyz, in
// a metric, and in the log when that changes. Nothing is stopped here: what needs
// the right waits by itself, the rest goes on. at is what the start has found.
func (a *app) watchRights(ctx context.Context, look *rights, at error) {
	count := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dedup_missing_rights", Help: "Rights on Kafka that the filter needs and lacks."})
	a.reg.MustRegister(count)
	said := ""
	note := func(found error) {
		n, why, err := missing(found)
		if err != nil {
			a.Log.Debug("rights on Kafka were not looked at", "error", err)
			return
		}
		count.Set(float64(n))
		a.ready.lack(why)
		if why != said {
			a.tellRights(why)
		}
		said = why
	}
	note(at)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.Tick(rightsEvery); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
				note(look.check(ctx))
			}
		}
	}()
	a.cleanup.onStop("rights", func(context.Context) error { cancel(); <-done; return nil })
}

func missing(err error) (n int, why string, failed error) {
	lacking, ok := errors.AsType[*acl.MissingError](err)
	if !ok {
		return 0, "", err
	}
	return len(lacking.Rights), lacking.Error(), nil
}

func (a *app) tellRights(why string) {
	if why == "" {
		a.Log.Info("all rights on Kafka are there again")
		return
	}
	a.Log.Warn("rights on Kafka are missing; what needs them waits", "why", why)
}
