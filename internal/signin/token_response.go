package signin

import (
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type tokenResponse struct {
	accessToken  string
	refreshToken string // "" when there is none
	expiresIn    uint64 // seconds
}

// parseTokenResponse reads a token response strictly: field names are exact, expires_in is an integer from 0 to 2^64-1.
// The problem is "" when the response is valid.
func parseTokenResponse(data []byte) (t tokenResponse, problem string) {
	var fields map[string]json.RawMessage
	if !utf8.Valid(data) || json.Unmarshal(data, &fields) != nil || fields == nil {
		return tokenResponse{}, "the answer is not a JSON object"
	}
	// Unmarshal leaves "" for null.
	if json.Unmarshal(orNull(fields["access_token"]), &t.accessToken) != nil || t.accessToken == "" {
		return tokenResponse{}, "access_token is missing or not a string"
	}
	if json.Unmarshal(orNull(fields["refresh_token"]), &t.refreshToken) != nil {
		return tokenResponse{}, "refresh_token is not a string"
	}
	var err error
	if t.expiresIn, err = parseUnsigned(fields["expires_in"]); err != nil {
		return tokenResponse{}, "expires_in is missing or not a whole number of seconds"
	}
	return t, ""
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// parseUnsigned reads a JSON number written as an integer. json.Number would accept the string "3600" as well.
func parseUnsigned(raw json.RawMessage) (uint64, error) {
	return strconv.ParseUint(string(raw), 10, 64)
}

// expiry returns received + seconds in Unix milliseconds, at most 2^64-1 instead of wrapping around.
func expiry(received time.Time, seconds uint64) uint64 {
	high, millis := bits.Mul64(seconds, 1000)
	sum, carry := bits.Add64(millis, uint64(received.UnixMilli()), 0)
	if high != 0 || carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// maxReported is where an error from the token endpoint is cut, in characters.
const maxReported = 512

// reportedError returns the error that a response reports (RFC 6749, section 5.2), "" for none. Some providers quote
// the request, so the given secrets are removed.
func reportedError(data []byte, secrets ...string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return ""
	}
	var code, description string
	_ = json.Unmarshal(orNull(fields["error"]), &code) // ignored unless it is a string
	_ = json.Unmarshal(orNull(fields["error_description"]), &description)
	text := joinNonEmpty(code, description)
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	if runes := []rune(text); len(runes) > maxReported {
		text = string(runes[:maxReported])
	}
	return text
}

// joinNonEmpty joins the non-empty texts with colons.
func joinNonEmpty(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ": ")
}
