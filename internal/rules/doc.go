// Package rules decides which extractor chain, window and namespace apply to a
// record of a tenant:flow.
//
// Rules are read in order, the user's before the built-in ones, and for each
// setting the first matching rule that sets it wins (as in ssh_config). Match
// is a glob on tenant:flow, key a glob on the extracted key: * is any text, ?
// one byte, {a,b} either; nothing else is special, and keys never contain
// those characters (message-keys: the encoding writes them as %XX).
//
// What makes a key (extractors) is decided by Set.Flow from the scope alone;
// what is decided once the key is known (window, namespace, with_date, mode,
// payload) by Flow.Decide. Both are meant for every record: no allocation once a scope has
// been seen, no regular expression, time bounded by the length of the key.
package rules
