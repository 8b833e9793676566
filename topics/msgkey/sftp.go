package msgkey

import (
	"bytes"
	"encoding/hex"
)

// contentHex is how much of the content's hash stands in a file's key.
const contentHex = 32

// temporary lists the endings that uploads have until they are complete.
func temporary() [5]string { return [...]string{".tmp", ".part", ".partial", ".filepart", ".temp"} }

// fromSFTP is the extractor "sftp": sftp:{account}/{base name}/{32 hex digits
// of the content's SHA-256}. Neither the name nor the time tells a new file
// from a repeat: partners write over one name daily, and an upload that is
// repeated has a new time. Where the name carries a number of its own, the
// groups of FilePattern identify the file: sftp:{account}/{group}:{group}…; a
// name it does not match has the content in its key as others have, which at
// worst tells two copies apart.
func fromSFTP(m *Message, _ payload, with *settings) (Found, Code, bool) {
	path, hasPath := m.header(HeaderSFTPFilename)
	account, hasAccount := m.header(HeaderSFTPAccount)
	name, account := baseName(trimBlanks(path)), trimBlanks(account)
	switch {
	case len(name) == 0:
		return Found{}, SFTPMissingFilename, hasPath || hasAccount
	case len(account) == 0:
		return Found{}, SFTPMissingAccount, true
	}
	if groups := with.groups(name); len(groups) > 0 {
		return newKey("sftp", Field{string(account)}, groups), "", true
	}
	sum := PayloadSHA256(m.Value)
	content := hex.EncodeToString(sum[:])[:contentHex]
	return newKey("sftp", Field{string(account)}, Field{string(name)}, Field{content}), "", true
}

// baseName is the last component of a path, without the ending of an upload
// that is under way.
func baseName(path []byte) []byte {
	name := path[bytes.LastIndexAny(path, `/\`)+1:]
	for _, ending := range temporary() {
		if base, ok := bytes.CutSuffix(name, []byte(ending)); ok && len(base) > 0 {
			return base
		}
	}
	return name
}

// groups are what FilePattern captures of a name; none, or empty ones alone,
// identify nothing.
func (s *settings) groups(name []byte) Field {
	if s.filePattern == nil {
		return nil
	}
	var groups Field
	all := s.filePattern.FindSubmatch(name)
	for i, group := range all {
		if i > 0 {
			groups = append(groups, string(group))
		}
	}
	for _, group := range groups {
		if group != "" {
			return groups
		}
	}
	return nil
}
