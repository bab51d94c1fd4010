package bot

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// explainMatrix gives a failure a message for people.
func explainMatrix(err error) error {
	var refused *matrixError
	if !errors.As(err, &refused) {
		return err
	}
	return domain.WrapError(domain.BadGateway, err, fmt.Sprintf("The homeserver answers with %s. The bot keeps trying.", refused))
}

// matrixError is an answer with a status other than 200.
type matrixError struct {
	status     int
	code       string // "" when it was no Matrix server that answered
	message    string
	retryAfter time.Duration
}

func (e *matrixError) Error() string {
	return strings.Join(strings.Fields(fmt.Sprintf("status %d %s %s", e.status, e.code, e.message)), " ")
}

// accountErrors are error codes about the account or the homeserver rather than about the call's room.
var accountErrors = []string{"M_RESOURCE_LIMIT_EXCEEDED", "M_CONSENT_NOT_GIVEN", "M_USER_DEACTIVATED", "M_USER_LOCKED", "M_USER_SUSPENDED"}

// ofRoom reports whether the answer is the homeserver's and about the call's room. The answer of a proxy whose homeserver is
// down says nothing about a room.
func (e *matrixError) ofRoom() bool {
	return e.code != "" && e.status != http.StatusUnauthorized && e.status != http.StatusRequestTimeout &&
		!slices.Contains(accountErrors, e.code)
}

// refusal returns the matrixError for an answer.
func refusal(response *http.Response, text []byte) *matrixError {
	var fields struct {
		Code       string `json:"errcode"`
		Message    string `json:"error"`
		RetryAfter int64  `json:"retry_after_ms"`
	}
	_ = json.Unmarshal(text, &fields) // they stay empty for a proxy's HTML
	e := &matrixError{status: response.StatusCode, code: short(fields.Code, maxName), message: short(fields.Message, maxReason)}
	e.retryAfter = time.Duration(fields.RetryAfter) * time.Millisecond
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		e.retryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// isMissing reports whether err says that a room does not have the state, or that the bot may not read it.
func isMissing(err error) bool {
	var refused *matrixError
	return errors.As(err, &refused) && (refused.code == "M_NOT_FOUND" || refused.code == "M_FORBIDDEN")
}
