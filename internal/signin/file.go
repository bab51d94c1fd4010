package signin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/wire"
)

// recordKey is the top-level key of our record in the credentials file. Other keys belong to other programs.
const recordKey = "oauth"

// errNoRecord means that the credentials file has no well-formed record.
var errNoRecord = errors.New("holds no sign-in")

// File is the credentials file: {"oauth": {…}} besides whatever keys other programs keep there. Several processes may
// use it at once.
type File struct{ path string }

// NewFile returns the credentials file at path, which need not exist.
func NewFile(path string) *File { return &File{path: path} }

// Tidy removes temporary files that killed writers left behind and makes the file readable by its owner only.
func (f *File) Tidy() error {
	return files.Tidy(f.path, false)
}

// record is the stored form of credentials. The last two are always null when we write them.
type record struct {
	AccessToken      string   `json:"access_token"`
	RefreshToken     string   `json:"refresh_token"`
	ExpiresAt        uint64   `json:"expires_at"`
	Scopes           []string `json:"scopes"`
	SubscriptionType *string  `json:"subscription_type"`
	RateLimitTier    *string  `json:"rate_limit_tier"`
}

// Read returns the stored credentials without their scopes. It returns an error when the file cannot be read, is not a
// JSON object, or has no record with the strings access_token and refresh_token and the unsigned integer expires_at.
func (f *File) Read() (domain.Credentials, error) {
	members, err := f.read()
	if err != nil {
		return domain.Credentials{}, err
	}
	var fields map[string]json.RawMessage
	var access, refresh *string
	if json.Unmarshal(members.Get(recordKey), &fields) != nil ||
		json.Unmarshal(fields["access_token"], &access) != nil || access == nil ||
		json.Unmarshal(fields["refresh_token"], &refresh) != nil || refresh == nil {
		return domain.Credentials{}, errNoRecord
	}
	expiresAt, err := parseUnsigned(fields["expires_at"])
	if err != nil {
		return domain.Credentials{}, errNoRecord
	}
	return domain.Credentials{
		AccessToken: domain.Secret(*access), RefreshToken: domain.Secret(*refresh), ExpiresAt: expiresAt,
	}, nil
}

// Write replaces the record with c and keeps every other key. It returns wire.ErrNoObject, and changes nothing, when
// the file is not a JSON object.
func (f *File) Write(c domain.Credentials) error {
	value, err := json.Marshal(record{
		AccessToken: c.AccessToken.Reveal(), RefreshToken: c.RefreshToken.Reveal(),
		ExpiresAt: c.ExpiresAt, Scopes: c.Scopes,
	})
	if err != nil {
		return err
	}
	return f.change(func(o wire.Object) wire.Object { return o.Set(recordKey, value) })
}

// Remove removes the record and keeps every other key. Without a file or a record it does nothing.
func (f *File) Remove() error {
	return f.change(func(o wire.Object) wire.Object { return o.Remove(recordKey) })
}

func (f *File) change(fn func(wire.Object) wire.Object) error {
	unlock, err := files.Lock(f.path)
	if err != nil {
		return err
	}
	defer unlock()
	before, err := f.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	was := before.Encode()
	after := fn(before).Encode()
	if bytes.Equal(after, was) {
		return nil
	}
	var text bytes.Buffer
	_ = json.Indent(&text, after, "", "  ") // its input is valid JSON
	text.WriteByte('\n')
	return files.WriteAtomic(f.path, text.Bytes())
}

func (f *File) read() (wire.Object, error) {
	data, err := files.Read(f.path, files.Large)
	if err != nil {
		return nil, err
	}
	o, err := wire.ParseObject(data)
	if err != nil {
		return nil, fmt.Errorf("%s %w; move it away and sign in again", f.path, err)
	}
	return o, nil
}
