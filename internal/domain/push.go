package domain

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// PushKeys is the pair of keys that identify the gateway to push services (VAPID), each in base64url.
type PushKeys struct {
	Public  string
	Private Secret
}

// PushDevice is a browser's subscription to push messages.
type PushDevice struct {
	Endpoint string `json:"endpoint"`
	P256dh   string `json:"p256dh"`
	Auth     string `json:"auth"`
}

// pushScheme is the prefix of the addresses of targets that are browsers.
const pushScheme = "webpush:"

// Address returns the browser's address as a target.
func (d PushDevice) Address() Secret {
	text, _ := json.Marshal(d) // strings always encode
	return Secret(pushScheme + base64.RawURLEncoding.EncodeToString(text))
}

// ParsePushAddress reads what Address writes; ok is false for any other address.
func ParsePushAddress(address Secret) (d PushDevice, ok bool) {
	text, ok := strings.CutPrefix(address.Reveal(), pushScheme)
	if !ok {
		return d, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return d, err == nil && json.Unmarshal(raw, &d) == nil
}
