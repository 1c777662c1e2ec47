//! Nothing: the tests beside it are all there is.
