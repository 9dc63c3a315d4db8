#include "element_error.h"

#include <exception>
#include <new>

#include "nonlocal/error.h"

namespace nonlocal {

void post_exception(GstElement* element, const char* network, int width, int height) noexcept {
  try {
    throw;
  } catch (const InvalidArgument& error) {
    GST_ELEMENT_ERROR(element, LIBRARY, SETTINGS,
                      ("Frames cannot be filtered with these settings: %s", as_utf8(error.what()).get()),
                      (nullptr));
  } catch (const ModelError& error) {
    GST_ELEMENT_ERROR(element, RESOURCE, NOT_FOUND,
                      ("The %s cannot be used: %s", network, as_utf8(error.what()).get()), (nullptr));
  } catch (const std::bad_alloc&) {
    if (width == 0) {  // before the first frame
      GST_ELEMENT_ERROR(element, RESOURCE, NO_SPACE_LEFT, ("Not enough memory to open the %s.", network),
                        (nullptr));
      return;
    }
    GST_ELEMENT_ERROR(element, RESOURCE, NO_SPACE_LEFT,
                      ("Not enough memory to filter a frame of %dx%d.", width, height), (nullptr));
  } catch (const std::exception& error) {
    GST_ELEMENT_ERROR(element, LIBRARY, FAILED,
                      ("Frames cannot be filtered: %s", as_utf8(error.what()).get()), (nullptr));
  } catch (...) {
    GST_ELEMENT_ERROR(element, LIBRARY, FAILED, ("Frames cannot be filtered."), ("unknown exception"));
  }
}

}  // namespace nonlocal
