package acl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics/acl"
)

func TestMissingRightsInOneSentence(t *testing.T) {
	t.Parallel()
	err := &acl.MissingError{
		Principal: acl.Principal{Name: "User:dedup", Bootstrap: "kafka-1:9092,kafka-2:9092"},
		Rights: acl.Rights{
			{Resource: acl.Topic, Name: acl.Named("duplicates"), Operation: acl.Read},
			{Resource: acl.TransactionalID, Name: acl.Prefix("dedup-ledger-"), Operation: acl.Write},
			{Resource: acl.Topic, Name: acl.Named("duplicates"), Operation: acl.DescribeConfigs},
		},
	}
	require.EqualError(t, err, "Kafka principal User:dedup lacks READ on topic duplicates, WRITE on transactional id dedup-ledger-*, "+
		"DESCRIBE_CONFIGS on topic duplicates; grant: "+
		"kafka-acls.sh --bootstrap-server kafka-1:9092,kafka-2:9092 --add --allow-principal User:dedup --operation Read --operation DescribeConfigs --topic duplicates && "+
		"kafka-acls.sh --bootstrap-server kafka-1:9092,kafka-2:9092 --add --allow-principal User:dedup --operation Write --transactional-id dedup-ledger- --resource-pattern-type prefixed")
}

func TestPrincipals(t *testing.T) {
	t.Parallel()
	rights := acl.Raw(acl.Named("raw-ingest.as2"))
	require.Contains(t, (&acl.MissingError{Rights: rights}).Error(), "this client's Kafka principal lacks READ")
	for name, quoted := range map[string]string{
		"":                        "User:NAME",
		"User:dedup":              "User:dedup",
		"User:CN=o'neill,O=Ac me": `'User:CN=o'\''neill,O=Ac me'`,
	} {
		line := acl.Principal{Name: name, Bootstrap: "b:1"}.Commands(rights)
		require.Equal(t, []string{"kafka-acls.sh --bootstrap-server b:1 --add --allow-principal " + quoted + " --operation Read --topic raw-ingest.as2"}, line)
	}
}
