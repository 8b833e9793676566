package ledger

// Keyed is what the rules of its flow make of a record.
type Keyed struct {
	Key  Key
	Code string // closed code where no key was found; Key is zero then

	// Aliases are further keys of a record that has one, canonical, as far as they
	// are found in it. They lie in the ledger scope of Key and have its window.
	Aliases []string

	// HashMode and CanonicalSHA256 are as those of a Registration.
	HashMode        string
	CanonicalSHA256 [32]byte

	// Observe sends to clean, marked, what would go elsewhere (mode: observe).
	Observe bool
	// NoPayload leaves the value out of the repeats in duplicates (payload: none).
	NoPayload bool
}
