// Package domain holds the nouns of Switchyard (projects, agents, tokens, events, pipelines, the bot's
// configuration, errors) and the rules that a value of each must satisfy by itself.
//
// It is a leaf: it knows the standard library and nothing of SQL, HTTP or TOML.
package domain

import (
	"errors"
	"fmt"
)

// Code is the kind of an Error. Package web maps codes to HTTP statuses.
type Code string

const (
	Invalid         Code = "invalid"          // the caller's input is wrong
	Unauthorized    Code = "unauthorized"     // no or wrong credentials
	Forbidden       Code = "forbidden"        // known caller, not allowed
	NotFound        Code = "not_found"        // it does not exist
	Conflict        Code = "conflict"         // it already exists
	TooLarge        Code = "too_large"        // the input exceeds a limit
	UnsupportedType Code = "unsupported_type" // not the required media type
	RateLimited     Code = "rate_limited"     // too many failures from one caller
	BadGateway      Code = "bad_gateway"      // a server that we depend on failed
	Unavailable     Code = "unavailable"      // not configured, or not ready
	LoopDetected    Code = "loop_detected"    // a gateway has passed the request on already
	Internal        Code = "internal"         // a fault of ours; the message does not show the cause
)

// Error is a failure with a code and a message that a user may see. The cause is for the log only.
type Error struct {
	Code    Code
	Message string
	Cause   error
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Cause }

// Errorf returns an Error without a cause. The formatted text is shown to users.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WrapError returns an Error that shows message to users and keeps cause for the log.
func WrapError(code Code, cause error, message string) *Error {
	return &Error{Code: code, Message: message, Cause: cause}
}

// ErrTokenRefused is the cause of an error if a server refuses the token, or needs one.
var ErrTokenRefused = errors.New("token is refused, or missing")

// ErrMayHaveRun is the cause of an error after which it is unknown whether the request took effect.
var ErrMayHaveRun = errors.New("it may have run")

// CodeOf returns the code of the first Error in err's chain, Internal for any other error, "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// MessageOf returns the text of err that a user may see.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return "internal error"
}
