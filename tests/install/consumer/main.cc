// The least a stranger can do with the installed library: include it and link it.

#include <hapax/result.h>

int main() { return 0; }
