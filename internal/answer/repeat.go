package answer

import "net/http"

// Unrepeated returns a transport whose failed writes client-go does not repeat. It would repeat a
// write after a status of 500 or more with the header Retry-After, and return the answer to the last
// one alone: a refusal would hide that an earlier write may still take effect. A write that
// is refused with TooManyRequests was not executed, and is repeated.
func Unrepeated(next http.RoundTripper) http.RoundTripper {
	return unrepeated{next}
}

type unrepeated struct{ http.RoundTripper }

// RoundTrip sends one request.
func (u unrepeated) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := u.RoundTripper.RoundTrip(request)
	if err == nil && request.Method != http.MethodGet && response.StatusCode >= http.StatusInternalServerError {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// WrappedRoundTripper enables client-go to close the idle connections of the transport.
func (u unrepeated) WrappedRoundTripper() http.RoundTripper { return u.RoundTripper }
