package integration

import (
	"bufio"
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/devservices"
	"dedupledger/topics/acl"
)

// TestRightsOfCheck: with the rights of docs/rights.md `dedup topics check` does
// its work, and without any one of them it fails.
func TestRightsOfCheck(t *testing.T) {
	t.Parallel()
	b := restrictedBundle(t, setup{Partitions: 1})
	who := []string{
		"DEDUP_KAFKA_SASL_USERNAME=" + devservices.UserFilter,
		"DEDUP_KAFKA_SASL_PASSWORD=" + devservices.RestrictedPassword(devservices.UserFilter),
	}
	var names []acl.Name
	for _, topic := range append(b.outputs(), b.raw...) {
		names = append(names, acl.Named(topic))
	}
	ends := func(what string, code int, says string, args ...string) {
		until(t, what, func(context.Context) (bool, error) { // brokers learn of rights a moment later
			r := b.try(t, who, args...)
			return r.code == code && strings.Contains(r.stdout+r.stderr, says), nil
		})
	}
	check := append([]string{"topics", "check"}, b.raw...)
	rights := acl.Check(names)
	b.allow(t, devservices.UserFilter, rights...)
	ends("check does its work", 0, "there        "+b.clean[0], check...)
	b.revoke(t, rights...)
	ends("check without any", 1, "lacks", check...)
	for _, r := range rights[:2] { // of one topic; the others are alike
		b.allow(t, devservices.UserFilter, rights...)
		ends("check does its work again", 0, "there        "+b.clean[0], check...)
		b.revoke(t, r)
		ends("check without "+r.String(), 1, r.Name.Text, check...)
	}
}

// TestRightOfTail: without READ on a topic `dedup topics tail` ends at once with
// the line that grants it, whether the topic may be seen or not, and also when
// the right is taken away while it follows; with it the records are there.
func TestRightOfTail(t *testing.T) {
	t.Parallel()
	b := restrictedBundle(t, setup{Partitions: 1})
	who := []string{
		"DEDUP_KAFKA_SASL_USERNAME=" + devservices.UserFilter,
		"DEDUP_KAFKA_SASL_PASSWORD=" + devservices.RestrictedPassword(devservices.UserFilter),
	}
	b.produce(t, order("acme:edifact", "1", 5))
	read := acl.Tail([]acl.Name{acl.Named(b.raw[0])})[0]
	grant := "grant: " + acl.Principal{Name: "User:filter", Bootstrap: b.entry()}.Commands(acl.Rights{read})[0]
	fails := func(says string, args ...string) {
		t.Helper()
		until(t, says, func(context.Context) (bool, error) { // brokers learn of rights a moment later
			r := b.try(t, who, append([]string{"topics", "tail", b.raw[0]}, args...)...)
			if r.code == 0 || !strings.Contains(r.stderr, says) {
				return false, nil
			}
			r.requireSentence(t, says, grant)
			return true, nil
		})
	}
	fails("does not exist, or may not be seen")
	describe := read
	describe.Operation = acl.Describe
	b.allow(t, devservices.UserFilter, describe)
	lacks := "Kafka principal User:filter lacks " + read.String()
	fails(lacks)
	b.allow(t, devservices.UserFilter, read)
	until(t, "the record as a line of JSON", func(context.Context) (bool, error) {
		r := b.try(t, who, "topics", "tail", b.raw[0], "-o", "jsonl")
		return r.code == 0 && strings.Count(r.stdout, "\n") == 1 && strings.HasPrefix(r.stdout, `{"place":"`+b.raw[0]+`/0/0"`), nil
	})
	binary, err := shared.binary()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), binary, "topics", "tail", b.raw[0], "-f", "-c", b.config)
	c.Env = environment(who)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	shown, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", errs.String())
	require.Contains(t, shown, b.raw[0]+"/0/0")
	b.revoke(t, read)
	require.ErrorAs(t, c.Wait(), new(*exec.ExitError))
	r := result{stderr: errs.String(), code: c.ProcessState.ExitCode()}
	r.requireSays(t, lacks, grant) // Describe is left to it
}
