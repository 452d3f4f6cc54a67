package term

import (
	"os"

	"golang.org/x/sys/windows"
)

// understandsEscapes switches the console's handling of escape sequences on. Consoles older than Windows 10 have none.
func understandsEscapes(file *os.File) bool {
	console := windows.Handle(file.Fd())
	var mode uint32
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
