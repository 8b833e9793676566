package ledger

// Keyed is what the rules of its flow make of a record.
type Keyed struct {
	Key  Key
	Code string // closed code where no key was found; Key is zero then

	// HashMode and CanonicalSHA256 are as those of a Registration.
	HashMode        string
	CanonicalSHA256 [32]byte

	// Observe sends to clean, marked, what would go elsewhere (mode: observe).
	Observe bool
	// NoPayload leaves the value out of the repeats in duplicates (payload: none).
	NoPayload bool
}
