package lullsqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// failed returns the error of a call with a mark: lull.Permanent if the same call will fail again,
// rate-limited if SQS reports that, transient if it is SQS' fault. An unknown error gets no mark. An
// answer of SQS gets its own mark, even if ctx has ended meanwhile.
func failed(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("lullsqs: %s: %w", what, err)
	if end := ctx.Err(); end != nil && !errors.Is(err, end) {
		err = fmt.Errorf("%w (%w)", err, end)
	}
	switch {
	case isRateLimited(err):
		return lull.RetryAfter(err, 0)
	case slices.Contains(permanents, code(err)):
		return lull.Permanent(err)
	case status(err) >= 500, api(err).ErrorFault() == smithy.FaultServer, isCutOff(err):
		return lull.Transient(err)
	}
	return err
}

// api returns the answer of SQS, or an error without a code if SQS has not answered.
func api(err error) smithy.APIError {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e
	}
	return &smithy.GenericAPIError{}
}

// code returns the name of an SQS error without the additions of protocols:
// "AWS.SimpleQueueService.NonExistentQueue", "KMS.ThrottlingException",
// "InvalidParameterValueException".
func code(err error) string {
	c := api(err).ErrorCode()
	c = c[strings.LastIndexAny(c, "#/")+1:]
	c = strings.TrimPrefix(c, "AWS.SimpleQueueService.")
	return strings.TrimSuffix(c, "Exception")
}

func response(err error) *http.Response {
	if e, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && e.Response != nil {
		return e.Response.Response
	}
	return nil
}

func status(err error) int {
	if r := response(err); r != nil {
		return r.StatusCode
	}
	return 0
}

var rateLimits = []string{
	"RequestThrottled", "Throttling", "Throttled", "RequestLimitExceeded", "TooManyRequests", "SlowDown",
	"BandwidthLimitExceeded", "LimitExceeded", "PriorRequestNotComplete", "KmsThrottled", "KMS.Throttling",
}

func isRateLimited(err error) bool {
	return slices.Contains(rateLimits, code(err)) || status(err) == http.StatusTooManyRequests
}

// isOverLimit reports whether the greatest number of messages is in flight.
func isOverLimit(err error) bool { return code(err) == "OverLimit" }

var permanents = []string{
	"AccessDenied", "AuthFailure", "NotAuthorized", "InvalidClientTokenId", "UnrecognizedClient", "MissingAuthenticationToken", "OptInRequired",
	"InvalidAddress", "InvalidSecurity", "UnsupportedOperation", "NonExistentQueue", "QueueDoesNotExist",
	"InvalidMessageContents", "InvalidParameterValue", "InvalidParameterCombination", "MissingParameter", "InvalidAttributeName", "InvalidAttributeValue",
	"KMS.AccessDenied", "KMS.Disabled", "KMS.InvalidKeyUsage", "KMS.NotFound", "KMS.OptInRequired",
	"KmsAccessDenied", "KmsDisabled", "KmsInvalidKeyUsage", "KmsNotFound", "KmsOptInRequired",
}

// isLost reports whether a receipt handle is no longer valid. SQS has reported that in different
// ways over the years, and not in every case: see [Broker.Settle].
func isLost(err error) bool {
	switch code(err) {
	case "MessageNotInflight", "ReceiptHandleIsInvalid":
		return true
	case "InvalidParameterValue":
		m := api(err).ErrorMessage()
		return strings.Contains(m, "receipt handle has expired") || strings.Contains(m, "not available for visibility timeout change")
	}
	return false
}

// isTooLong reports whether a visibility timeout would keep the message out for more than 12 hours.
func isTooLong(err error) bool {
	return code(err) == "InvalidParameterValue" && strings.Contains(api(err).ErrorMessage(), "Total VisibilityTimeout")
}

// handled returns the error of a call with a receipt handle.
func handled(ctx context.Context, what string, err error) error {
	if isLost(err) {
		return fmt.Errorf("lullsqs: %s: %w: %w", what, queue.ErrLost, err)
	}
	return failed(ctx, what, err)
}

// unanswered reports whether a call that failed with err may have taken effect.
func unanswered(err error) bool {
	return err != nil && (status(err) == 0 && code(err) == "" || status(err) >= 500 || isCutOff(err))
}

// isCutOff reports whether the connection broke in the middle of a successful answer.
func isCutOff(err error) bool { return status(err)/100 == 2 }

// retryAfter returns the value of the header x-amz-retry-after, in milliseconds, if it is there.
func retryAfter(err error) (time.Duration, bool) {
	r := response(err)
	if r == nil {
		return 0, false
	}
	ms, parse := strconv.ParseInt(r.Header.Get("x-amz-retry-after"), 10, 32)
	return time.Duration(ms) * time.Millisecond, parse == nil && ms >= 0
}
